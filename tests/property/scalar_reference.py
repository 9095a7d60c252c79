"""The step, one layout at a time, in plain Python: written from the meaning of the equations, to check the arrays.

No numpy and nothing from `chipwise.predict` but its plain records (chip figures, coefficients, the operations). One
function per equation, in the order a step is put together, so that a change of the model is a line here.
"""

from __future__ import annotations

from math import ceil, exp, floor, log2, prod

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (16, 64))
SPLITS = (1, 2, 4, 8)
TAIL = 0.3  # share of a wave of attention tiles that idles at the end
ATTENTION_INPUTS = {"qkv", "latent_down", "q_up", "kv_up"}  # offloaded with the layer inputs, never computed again
LAYER_ENDS = {"mlp_out", "expert_out", "shared_out"}  # a compiler sees that nothing needs their output again


def blend(a, b, power):
    """A smooth maximum."""
    return (a**power + b**power) ** (1 / power)


# --- kernels ---------------------------------------------------------------------------------------------------


def matmul(e, m, n, k, batch, in_bytes, weight_bytes, out_bytes):
    c = e.coefficients
    traffic = batch * (in_bytes * m * k + weight_bytes * n * k + out_bytes * m * n)
    memory = traffic / (e.bandwidth * c.memory)
    if e.table is not None:
        return max(compiled(e, m / e.devices, n, k, batch, in_bytes, weight_bytes) * c.cycles, memory)
    if e.mxu:
        w = e.mxu
        work = 2 * batch * (ceil(m / 8) * 8) * (ceil(n / w) * w) * (ceil(k / w) * w)
        compute = work / (e.peak * c.matmul) + c.wave_s
    else:
        compute = min(tile(e, m, n, k, batch, *shape, split) for shape in TILES for split in SPLITS)
    return blend(compute, memory, 4) + c.launch_s


def compiled(e, m, n, k, batch, in_bytes, weight_bytes):
    """A product on one device by its compiler's table: arithmetic, memory, a start, and what the grid says there."""
    t, w, peak, bandwidth = e.table, e.mxu, e.peak / e.devices, e.bandwidth / e.devices

    def streamed(rows, cols):
        return (ceil(rows / 8) * 8 + t.fill) * ceil(cols / w) * w

    def stored(rows, cols):
        return batch * min(ceil(a / 8) * 8 * ceil(b / 128) * 128 for a, b in ((rows, cols), (cols, rows)))

    compute = 2 * batch * min(streamed(m, n), streamed(n, m)) * (ceil(k / w) * w + t.drain) / (peak * t.share)
    if t.ragged is not None and k % 128 > 0:
        compute *= t.ragged
    small, large = sorted((in_bytes * stored(m, k), weight_bytes * stored(k, n)))
    room = t.room_tuned if m * n * k >= 2048**3 else t.room
    ahead = next((operand for operand in (large, small) if operand <= room), 0.0)
    moved = (large + small - ahead) / (bandwidth * t.reads) + 2 * stored(m, n) / (bandwidth * t.writes)
    factor = exp(grid(t.factors.tolist(), m, n, k) + (t.batched if batch > 1 else 0.0))
    longer = blend(compute, moved, 6)
    alone = min(compute, moved) * t.step / (t.step + longer)
    return max((longer + alone + t.start) * factor, 2 * batch * m * n * k / (peak * 0.99))


def grid(values, m, n, k):
    """Linear between the octaves: 8, 16, 32... of the rows, 16, 32... of the others."""

    def place(size, first, octaves):
        at = min(max(log2(size) - first, 0), octaves)
        low = min(floor(at), octaves - 1)
        return low, at - low

    (row, x), (col, y), (deep, z) = place(m, 3, 14), place(n, 4, 13), place(k, 4, 13)

    def plane(sheet):
        near, far = (line[deep] * (1 - z) + line[deep + 1] * z for line in (sheet[col], sheet[col + 1]))
        return near * (1 - y) + far * y

    return plane(values[row]) * (1 - x) + plane(values[row + 1]) * x


def convolution(op, rows, lanes):
    """The three products of a convolution, (batch, m, n, k), each with the values of its left operand that are read."""
    w = op.window
    overlap = max(1, w.taps / w.stride)  # windows that hold one value
    inputs = rows * w.taps / overlap  # positions of the input that are read
    a, b, side_by_side = op.k / w.taps, op.n, 1
    while side_by_side < w.groups and side_by_side * min(a, b) < (128 if lanes else 64):
        side_by_side *= 2
    side_by_side = min(side_by_side, w.groups)
    batch, a, b = w.groups / side_by_side, a * side_by_side, b * side_by_side

    def padded(channels):
        return ceil(channels / 128) * 128 if lanes and channels > 8 else channels

    return (
        ((batch, rows, b, padded(a) * w.taps), inputs * a),
        ((batch, inputs, a, padded(b) * overlap), rows * b),
        ((batch, a * w.taps, b, rows), inputs * a),
    )


def tile(e, m, n, k, batch, rows, cols, split):
    c = e.coefficients
    core = e.peak * c.matmul / e.cores
    waves = ceil(batch * ceil(m / rows) * ceil(n / cols) * split / e.cores)
    depth = max(ceil(k / (split * 64)), 1) * 64
    widest = 32 / 256 + 32 / 128
    slow = 1 + c.small_tile * (32 / rows + 32 / cols - widest)
    seconds = waves * (2 * rows * cols * depth * slow / core + c.wave_s)
    if split > 1:
        seconds += c.wave_s + 2 * split * batch * m * n / e.bandwidth
    return seconds


def attention(e, batch, heads, kv_heads, qk, v, queries, visible, backward):
    c = e.coefficients
    head = (qk + v) / 2
    speed = head / (ceil(head / e.mxu) * e.mxu) if e.mxu else (min(head, 256) / 128) ** c.attention_head
    rate = e.peak * c.attention * speed * (c.attention_back if backward else 1)
    flops = 2 * batch * heads * queries * visible * (qk + v) * (2.5 if backward else 1)
    units = batch * heads * ceil(queries / 128)
    tail = 1 + TAIL * e.cores / max(units, 0.5 * e.cores)
    ramp = 1 + c.attention_ramp / max(visible, 64)
    traffic = 2 * batch * queries * (heads + kv_heads) * (qk + v) * (3 if backward else 1)
    return blend(flops * tail * ramp / rate, traffic / (e.bandwidth * c.memory), 4) + c.attention_launch_s


# --- wires -----------------------------------------------------------------------------------------------------


def domain(w):
    return prod(w.shape) if w.shape else w.fabric.domain


def members_inside(w, size, stride):
    return min(max(floor(domain(w) / stride), 1), size)


def fast_rate(w, inside, stride):
    if w.shape:
        return torus_rate(w, inside, stride)
    mesh = w.fabric.kind == "mesh"
    peers = w.fabric.domain if mesh else min(w.fabric.domain, 8)
    share = min((max(inside, 2) - 1) / max(1, peers - 1), 1) ** (1 if mesh else w.coefficients.spread)
    return w.fabric.scale_up * w.coefficients.up * share


def torus_rate(w, inside, stride):
    link = w.fabric.link * w.coefficients.up
    total, start = 0.0, 1
    for length, wrap in list(zip(w.shape, w.wraps, strict=True))[::-1]:
        low, high = max(stride, start), min(stride * inside, start * length)
        covered, shared = max(high / low, 1.0), max(low / start, 1.0)
        if covered > 1:
            ring = wrap and covered * shared >= length
            total += (2 if ring else 1) * link / shared
        start *= length
    return total or link


def filled(w, wire):
    """Messages fill the wires slowly."""
    return wire + (wire * w.coefficients.ramp_s) ** 0.5


def ring(w, size, stride, data):
    """Members inside a domain, domains spanned, seconds the wires of one gather are busy."""
    inside = members_inside(w, size, stride)
    across = ceil(size / inside)
    rate = fast_rate(w, inside, stride)
    if across > 1:
        rate = min(rate, w.fabric.scale_out * w.coefficients.out * inside)
    return inside, across, (size - 1) / size * data / rate


def latency(w, inside, across, rounds):
    c = w.coefficients
    far = c.out_base_s + rounds * c.out_hop_s * (across - 1) if across > 1 else 0.0
    return c.base_s + rounds * c.hop_s * (inside - 1) + far


def gather(w, size, stride, data):
    if size <= 1:
        return 0.0
    inside, across, wire = ring(w, size, stride, data)
    return filled(w, wire) + latency(w, inside, across, 1)


def all_reduce(w, size, stride, data):
    if size <= 1:
        return 0.0
    inside, across, wire = ring(w, size, stride, data)
    wire *= 2
    if w.fabric.kind == "switch" and w.coefficients.in_switch > 0 and across == 1 and size > 4:
        wire = min(wire, data / (w.fabric.scale_up * w.coefficients.in_switch))
    return filled(w, wire) + latency(w, inside, across, 2)


def exchange(w, size, stride, data, copies):
    if size <= 1:
        return 0.0
    c = w.coefficients
    inside = members_inside(w, size, stride)
    across = ceil(size / inside)
    rate = fast_rate(w, inside, stride)
    if w.shape:
        rate *= 4 / max(inside ** (1 / 3) if len(w.shape) == 3 else inside**0.5, 4)
    # a token goes once to each chip, and over the network once to each domain, that holds one of its experts
    reached = distinct(size, copies) / copies * (inside - 1) / inside if copies > 1 else (inside - 1) / size
    local = data * reached / rate
    remote = data / copies * distinct(across, copies) * (across - 1) / across / (w.fabric.scale_out * c.out)
    start = c.base_s + c.hop_s * (inside - 1) + (c.out_base_s if across > 1 else 0)
    return filled(w, max(local, remote)) + start


def distinct(places, picks):
    """How many of `places` are hit by `picks` random choices."""
    return places * (1 - (1 - 1 / places) ** picks)


def send(w, stride, data):
    c = w.coefficients
    if stride >= domain(w):
        return data / (w.fabric.scale_out * c.out) + c.out_base_s
    # a torus neighbour and a mesh peer are one link away, a switch gives all of its bandwidth to one peer
    peers = max(1, w.fabric.domain - 1)
    up = {"torus": w.fabric.link, "mesh": w.fabric.scale_up / peers}.get(w.fabric.kind, w.fabric.scale_up)
    return data / (up * c.up) + c.base_s


# --- pipeline stages ---------------------------------------------------------------------------------------------


def laid_out(ops, pp):
    """Layers of every stage, first to last, and what the last has beside them, in layers."""
    layers, ahead = ops.model.layers, ops.model.mtp_layers
    head = sum(2 * m.rows * m.n * m.k * m.count for m in ops.matmuls if m.place == "head")
    one = (ops.flops_forward - head) / (layers + ahead) if layers else 1.0
    beside = ahead + head / one
    if pp == 1 or layers % pp == 0:
        return [layers / pp] * pp, beside
    options = []
    for last in range(layers // pp + 1):
        most = ceil((layers - last) / (pp - 1))
        rest = layers - last
        stages = []
        for _ in range(pp - 2):  # from behind the first on, as full as the fullest; what is left over is the first's
            stages.append(min(most, rest))
            rest -= stages[-1]
        options.append((max(most, last + beside), -last, [rest, *stages, last]))
    return min(options)[2], beside


def slowest_stage(ops, pp):
    """The share of the layers of the stage that takes longest, and whether it has the output layer."""
    stages, beside = laid_out(ops, pp)
    if pp == 1 or ops.model.layers % pp == 0:
        return 1 / pp, 1.0
    blocks = ops.model.layers + ops.model.mtp_layers
    if stages[-1] + beside > max(stages[:-1]):
        return (stages[-1] + ops.model.mtp_layers) / blocks, 1.0
    return max(stages[:-1]) / blocks, 0.0


# --- one micro-batch of the whole model, on the chips of one tensor group ---------------------------------------


def products(ops, site, x, frozen):
    """Seconds of the matrix products: layers forward and backward, experts forward and backward, output layer, what
    recomputation and offloading do again of both; bytes that quantising moves."""
    num = site.numerics
    out = dict.fromkeys(("f", "b", "redo", "redo_off", "ef", "eb", "eredo", "eredo_off", "head", "quant"), 0.0)
    for op in ops.matmuls:
        rows = x.micro_batch * op.rows / (1 if op.per_sequence else x.cp)
        n = op.n / x.tp if op.split == "n" else op.n
        k = op.k / x.tp if op.split == "k" else op.k
        batch = 1
        if op.groups > 1:
            batch, rows = max(op.groups / x.ep, 1), rows * x.ep / op.groups
        low = op.quantized and num.low_bytes < 2
        spec = site.low if op.quantized else site.high
        back = site.high if low and num.back_high else spec
        b = num.low_bytes if low else num.act_bytes
        if op.window:
            passes = convolution(op, rows, site.high.mxu > 0)
            (batch, *_), values = passes[0]
        else:
            passes = [((batch, *size), size[0] * size[2]) for size in ((rows, n, k), (rows, k, n), (k, n, rows))]
            values = rows * k
        seconds = [
            matmul(
                back if i else spec,
                m,
                n_,
                k_,
                blocks,
                b * read / (m * k_),
                b,
                num.grad_bytes if i == 2 else num.act_bytes,
            )
            for i, ((blocks, m, n_, k_), read) in enumerate(passes)
        ]
        forward = seconds[0]
        backward = (0 if op.window and op.window.of_data else seconds[1]) + (0 if frozen else seconds[2])
        if op.place == "head":
            out["head"] += op.count * (forward + backward)
        else:
            kind = "e" if op.groups > 1 else ""
            out[kind + "f"] += op.count * forward
            out[kind + "b"] += op.count * backward
            if not (site.traits.compiled and op.name in LAYER_ENDS):
                out[kind + "redo"] += op.count * forward
                if op.name not in ATTENTION_INPUTS:
                    out[kind + "redo_off"] += op.count * forward
        if low:
            out["quant"] += op.count * batch * (values + rows * passes[0][0][2]) * (2 + 2 * b)
    return out


def attentions(ops, site, x):
    """Seconds forward and backward, and bytes of square matrices where attention isn't fused."""
    forward = backward = moved = 0.0
    act = site.numerics.act_bytes
    for c in ops.attention:
        heads, queries = c.heads / x.tp, c.queries / x.cp
        if site.traits.flash:
            kv = max(c.kv_heads / x.tp, 1)
            shape = (x.micro_batch, heads, kv, c.qk_dim, c.v_dim, queries, c.visible)
            forward += c.count * attention(site.high, *shape, backward=False)
            backward += c.count * attention(site.high, *shape, backward=True)
        else:
            span, batch = min(c.span, c.queries), x.micro_batch * heads
            both = matmul(site.high, queries, span, c.qk_dim, batch, act, act, act)
            both += matmul(site.high, queries, c.v_dim, span, batch, act, act, act)
            forward, backward = forward + c.count * both, backward + c.count * 2 * both
            passes = 4.5 if site.traits.fused_softmax else {2: 18.5, 4: 8.25}[act]
            moved += c.count * batch * queries * span * act * passes
    return forward, backward, moved


# passes over a map, forward and backward, with every kernel alone, one for the norm and what follows, or in products
AROUND = {
    "norm": {"separate": (5, 8), "together": (3, 5), "products": (0, 2)},
    "join": {"separate": (3, 3), "together": (1, 4), "products": (2, 2)},
}


def element_wise(ops, site, x):
    """Bytes moved by the layers forward and backward, by the output layer, and in products forward and backward."""
    t = site.traits
    out = dict.fromkeys(("f", "b", "head", "product_f", "product_b"), 0.0)
    for s in ops.streams:
        split = s.split and (t.sequence_parallel or s.name not in ("norms", "residuals"))
        moved = s.count * s.bytes_per_row * site.numerics.act_bytes / 2 * x.micro_batch * s.rows / x.cp
        moved /= x.tp if split else 1
        if s.place == "head":
            out["head"] += moved
        elif s.kind not in AROUND:
            out["f"] += moved
            out["b"] += 2 * moved
        else:
            passes, where = AROUND[s.kind], "product_" if t.fusion == "products" else ""
            for name, count in zip("fb", passes[t.fusion], strict=True):
                out[where + name] += moved * count / passes["separate"][0]
    return out


def boundary(ops, site, x):
    """Bytes of the activations between two layers, before tensor parallelism splits them."""
    return x.micro_batch * ops.rows / x.cp * ops.model.d_model * site.numerics.act_bytes


def offloaded(ops, site, x):
    """Bytes of one layer and chip that go to the host: its input and what the attention projections made of it."""
    kept = sum(m.n for m in ops.matmuls if m.name in ATTENTION_INPUTS)
    return boundary(ops, site, x) / x.tp * (ops.model.d_model + kept) / ops.model.d_model


def tensor_seconds(ops, site, x):
    if not ops.model.heads:
        return 0.0
    times = (1 if ops.model.parallel_block else 2) * ops.model.layers
    return times * all_reduce(site.wires, x.tp, 1, boundary(ops, site, x))


def expert_seconds(ops, site, x):
    e, num = ops.model.experts, site.numerics
    if e is None:
        return 0.0
    back = boundary(ops, site, x) * e.per_token
    there = back * num.dispatch_bytes / num.act_bytes
    return ops.expert_layers * sum(exchange(site.wires, x.ep, x.tp, d, e.per_token) for d in (there, back))


def context_seconds(ops, site, x):
    if not ops.attention:
        return 0.0
    c, z = ops.attention[0], ops.model.latent
    per_token = z.kv_rank + z.rope_dim if z else c.kv_heads / x.tp * (c.qk_dim + c.v_dim)
    data = x.micro_batch * ops.rows * per_token * site.numerics.act_bytes
    return ops.model.layers * gather(site.wires, x.cp, x.tp, data)


def launches(ops, site):
    mm = sum(m.count for m in ops.matmuls if m.place == "layer")
    at = sum(a.count for a in ops.attention) * (1 if site.traits.flash else 5)
    st = sum(s.count * s.kernels for s in ops.streams if s.place == "layer")
    return mm + at + st, 2 * mm + 2 * at + 1.5 * st, 10


# --- the state: who keeps what, and what travels for it ---------------------------------------------------------


def stage_params(ops, x):
    """Parameters of one stage and tensor rank: dense and expert ones."""
    p = ops.params
    return (p.total - p.experts) / (x.tp * x.pp), p.experts / (x.tp * x.ep * x.pp)


def share(ops, x):
    """Parameters one chip keeps of state that is shared out."""
    dense, experts = stage_params(ops, x)
    group = x.shard * x.cp
    return dense / group + experts / max(group / x.ep, 1)


def state_traffic(ops, site, x, trained):
    """Seconds a micro-batch moves weights and gradients, and seconds of what is reduced or gathered once a step."""
    num, w = site.numerics, site.wires
    dense, experts = stage_params(ops, x)
    group = x.shard * x.cp
    stride = x.tp * x.pp if x.pipe_inner else x.tp
    e_group, e_stride = max(group / x.ep, 1), stride * min(x.ep, group)

    calls = max(ops.model.layers / x.pp, 1)  # layer by layer

    def over_group(width):
        out = gather(w, group, stride, dense * width / calls)
        return calls * (out + (gather(w, e_group, e_stride, experts * width / calls) if ops.model.experts else 0))

    wide = num.reduce_bytes * trained
    if x.zero == 0:
        return 0.0, all_reduce(w, x.dp * x.cp, stride, (dense + experts) * wide)
    fetch, scatter = over_group(num.gather_bytes), over_group(wide)
    outer = all_reduce(w, x.dp / x.shard, stride * group, share(ops, x) * wide)
    if group == 1:
        return 0.0, outer
    return {
        1: (0.0, scatter + fetch + outer),
        2: (scatter, fetch + outer),  # no whole gradient is kept, so every micro-batch is reduced
        3: (fetch + fetch + scatter, outer),  # weights are gathered forward and again backward
    }[x.zero]


# --- the step ---------------------------------------------------------------------------------------------------


def micro_batch(ops, site, x, costs, k, n):
    """Compute of one micro-batch on one stage, by cause, as the stack runs it; and its forward pass."""
    stream_rate = site.high.bandwidth * site.high.coefficients.memory
    mm, (at_f, at_b, square) = products(ops, site, x, costs.frozen), attentions(ops, site, x)
    moved = element_wise(ops, site, x)
    head_bytes = moved["head"]
    st_f = (moved["f"] + square + 0.5 * mm["quant"]) / stream_rate
    st_b = (moved["b"] + 2 * square + 0.5 * mm["quant"]) / stream_rate
    mm["f"] += moved["product_f"] / stream_rate
    mm["b"] += moved["product_b"] / stream_rate
    # gradients of several micro-batches are added up in memory
    add = sum(stage_params(ops, x)) * costs.trained * 2 * site.numerics.reduce_bytes / stream_rate if n > 1 else 0.0
    part, on_stage = slowest_stage(ops, x.pp)
    cheap = (k.attention * at_f + k.stream * st_f) * part
    forward = (k.matmul * mm["f"] + k.expert * mm["ef"]) * part + cheap
    redo = {
        "none": 0.0,
        "selective": cheap,
        "full": (k.matmul * mm["redo"] + k.expert * mm["eredo"]) * part + cheap,
        "offload": (k.matmul * mm["redo_off"] + k.expert * mm["eredo_off"]) * part + cheap,
    }[x.recompute]
    parts = {
        "matmul": k.matmul * ((mm["f"] + mm["b"]) * part + mm["head"] * on_stage),
        "expert": k.expert * (mm["ef"] + mm["eb"]) * part,
        "attention": k.attention * (at_f + at_b) * part,
        "stream": k.stream * ((st_f + st_b) * part + add + 3 * head_bytes / stream_rate * on_stage),
        "recompute": redo,
    }
    return parts, forward


def collectives(ops, site, x, shard, k):
    """Seconds of everything a micro-batch sends, and the share that may run beside compute."""
    passes = 3 if x.recompute in ("full", "offload") else 2  # recomputed layers talk once more
    part, _ = slowest_stage(ops, x.pp)
    moved = 2 * ops.model.layers * part * offloaded(ops, site, x) / site.host_link
    return {
        "tensor": (passes * tensor_seconds(ops, site, x) * part, k.overlap_tensor),
        "expert_exchange": (passes * expert_seconds(ops, site, x) * part, k.overlap_expert),
        "context": (3 * context_seconds(ops, site, x) * part, k.overlap_context),
        "shard": (shard, k.overlap_shard),
        "offload": (moved if x.recompute == "offload" else 0.0, 0.95),
    }


def pooled(sent, room):
    """What shows of collectives that share `room` seconds of compute to hide behind, and how long they could hide.

    Whatever does not find room shows in proportion to what each could have hidden.
    """
    hideable = sum(seconds * share for seconds, share in sent.values())
    found = min(1.0, room / hideable) if hideable > 0 else 1.0
    return {name: seconds - seconds * share * found for name, (seconds, share) in sent.items()}, hideable


def step(ops, site, x, global_batch, costs, k):
    """Seconds of one step by cause, and their total; what is hidden beside them."""
    n = global_batch / (x.dp * x.micro_batch)
    slots = n + (x.pp - 1) / x.vpp
    parts, forward = micro_batch(ops, site, x, costs, k, n)
    compute = sum(parts.values())
    shard, once = state_traffic(ops, site, x, costs.trained)
    sent = collectives(ops, site, x, shard, k)
    shown, hideable = pooled(sent, compute)
    stride = x.tp * x.cp * (1 if x.pipe_inner else x.dp)
    pipe = 2 * x.vpp * send(site.wires, stride, boundary(ops, site, x) / x.tp) if x.pp > 1 else 0.0
    shown["pipe"] = (1 - k.overlap_pipe) * pipe
    device = compute + sum(shown.values())

    launch_f, launch_b, launch_step = launches(ops, site)
    again = 2 if x.recompute in ("full", "offload") else 1
    stage = blend(device, k.launch_s * (launch_f * again + launch_b) * slowest_stage(ops, x.pp)[0], 6)
    wait = stage - device
    # the last backward pass hides gradients where other collectives leave room
    room = min(compute - forward, max(compute - hideable, 0.0)) + wait
    reduce = (1 - k.overlap_reduce) * once + max(k.overlap_reduce * once - room, 0.0)
    kept = share(ops, x) if x.zero else sum(stage_params(ops, x))
    stream_rate = site.high.bandwidth * site.high.coefficients.memory
    optimizer = k.optimizer * kept * costs.trained * costs.optimizer_bytes / stream_rate + k.launch_s * launch_step
    out = {name: n * seconds for name, seconds in (parts | shown).items()}
    out |= {
        "launch": n * wait,
        "reduce": reduce,
        "bubble": (slots - n) * stage,
        "optimizer": optimizer,
        "fixed": k.fixed_s,
    }
    total = slots * stage + reduce + optimizer + k.fixed_s
    wires = [kind for kind in shown if kind != "offload"]  # copies to the host are no collective
    everything = n * (sum(sent[kind][0] for kind in wires if kind in sent) + pipe) + once
    return out | {"total": total, "hidden": everything - n * sum(shown[kind] for kind in wires) - reduce}


# --- memory -----------------------------------------------------------------------------------------------------


def saved(ops, num, flash, xla):
    """Bytes a sequence leaves for the backward pass: everything, without the cheap ones, layer inputs alone."""
    act, d, n = num.act_bytes, ops.model.d_model, ops.model.layers
    layer = [m for m in ops.matmuls if m.place == "layer"]
    if ops.model.family == "cnn":
        outputs = sum(m.count * m.rows * m.n * (m.window.groups if m.window else 1) for m in layer)
        return 2 * act * outputs, act * outputs, 0.25 * act * outputs
    kept = min(num.low_bytes, act)  # low-precision products keep their inputs quantized
    inputs = kept * sum(m.count * m.rows * m.k for m in layer if m.name not in ("q_up", "kv_up"))
    narrow = kept * sum(m.count * m.rows * m.k for m in layer if m.name.endswith("_out"))
    core = square = 0.0
    for c in ops.attention:
        core += act * c.count * c.queries * (c.heads * c.qk_dim + c.kv_heads * (c.qk_dim + c.v_dim))
        square += 0 if flash else act * 2.5 * c.count * c.queries * min(c.span, c.queries) * c.heads
    wide = sum(m.count * m.rows * m.n for m in layer if m.name in ("mlp_in", "shared_in", "expert_in"))
    cheap = act * (2 * n * ops.rows * d + wide)
    some = core + act * (wide + n * ops.rows * d) if xla else inputs - 0.5 * narrow + core
    return inputs + core + square + cheap, some, act * n * ops.rows * d


def fullest_stage(ops, x):
    """Parameters of the pipeline stage that holds most, per tensor and expert rank."""
    p, layers = ops.params, ops.model.layers
    first = p.embedding + p.positions
    last = p.head or p.embedding
    inside = p.total - p.experts - first - p.head
    if x.pp == 1:
        return (p.total - p.experts) / x.tp, p.experts / (x.tp * x.ep)
    stages, _ = laid_out(ops, x.pp)
    ends = [first] + [0] * (x.pp - 2) + [last]
    dense = max(inside * n / layers + end for n, end in zip(stages, ends, strict=True))
    return dense / x.tp, p.experts * max(stages) / layers / (x.tp * x.ep)


def memory(ops, site, x, global_batch, costs):
    """Bytes per chip by class, and their total."""
    num, t, p = site.numerics, site.traits, ops.params
    dense, experts = fullest_stage(ops, x)
    group = x.shard * x.cp

    def kept(stage):
        return dense / group + experts / max(group / x.ep, 1) if x.zero >= stage else dense + experts

    master = costs.state_bytes if costs.state_bytes > num.weight_bytes else 0
    full, some, inputs = saved(ops, num, t.flash, t.xla)
    split = x.micro_batch / (x.cp * x.tp)
    whole = split if t.sequence_parallel else x.micro_batch / x.cp
    held = {"none": full * split, "selective": some * split, "full": inputs * whole, "offload": 0.0}[x.recompute]
    stages, _ = laid_out(ops, x.pp)
    count = global_batch / (x.dp * x.micro_batch)
    flight = max(n * min(count, x.pp - i) for i, n in enumerate(stages)) / max(ops.model.layers, 1)
    if x.vpp > 1:
        flight *= 1 + (x.pp - 1) / (x.pp * x.vpp)
    layer = full / max(ops.model.layers, 1) * split
    working = layer * (2 if x.recompute in ("full", "offload") else 1)
    scored = ops.rows * (0.15 if ops.model.family == "encoder" else 1.0)
    logits = ops.model.vocab * scored * split * (site.traits.score_bytes or num.act_bytes + 4)
    one_layer = p.per_layer_dense / x.tp + p.per_layer_experts / (x.tp * x.ep)
    sharded = x.zero == 3 and x.shard * x.cp > 1
    whole_inputs = 0.0
    if t.xla:
        whole_head = 2 * (p.head or p.embedding) / x.tp * num.gather_bytes * site.devices
        logits = min(logits, 0.75e9 * site.devices) + (whole_head if sharded else 0.0)
        whole_inputs = 3 * ops.rows * ops.model.d_model * num.act_bytes * x.micro_batch / x.cp * (1 - 1 / x.tp)
    out = {
        "weights": kept(3) * num.weight_bytes,
        "gradients": kept(2) * num.grad_bytes * costs.trained,
        "optimizer": kept(1) * (master + costs.states * costs.state_bytes) * costs.trained,
        "activations": held * flight + working + whole_inputs,
        "head": logits,
        "gathered": 2 * one_layer * num.gather_bytes * site.devices if x.zero == 3 and x.shard * x.cp > 1 else 0.0,
    }
    return out | {"total": sum(out.values())}
