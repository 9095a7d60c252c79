"""PyTorch modules against their JAX translation, on the CPU: prints the largest differences as JSON."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import torch
import torch.nn.functional as F

from chipwise.compiled.loaders.torch_graph import converted

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "examples" / "programs"))
import torch_cnn
import torch_transformer


def arrays(tensors):
    return {name: jnp.asarray(tensor.detach().numpy()) for name, tensor in tensors.items()}


def difference(ours, theirs):
    return float(abs(jnp.asarray(ours) - jnp.asarray(theirs.detach().numpy())).max())


class WithLoss(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, tokens, labels):
        return F.cross_entropy(self.module(tokens).flatten(0, -2), labels.flatten())


def forward(module, *inputs):
    graph = converted(torch.export.export(module, inputs, strict=False))
    _, (ours,) = jax.jit(graph.run)(
        arrays(graph.params), arrays(graph.buffers), [jnp.asarray(x.numpy()) for x in inputs]
    )
    return difference(ours, module(*inputs))


def gradients(module, *inputs):
    """Of the loss by every parameter, and the buffers that training updates."""
    module = WithLoss(module).train()
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    graph = converted(torch.export.export(module, inputs, strict=False))
    buffers = arrays({**graph.buffers, **{name: before[name] for name in graph.mutated}})

    def loss(params):
        written, (value,) = graph.run(params, buffers, [jnp.asarray(x.numpy()) for x in inputs])
        return value, written

    grads, written = jax.jit(jax.grad(loss, has_aux=True))(arrays(graph.params))
    module(*inputs).backward()
    worst = max(difference(grads[name], parameter.grad) for name, parameter in module.named_parameters())
    after = dict(module.named_buffers())
    return worst, max((difference(written[name], after[name]) for name in graph.mutated), default=0.0)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch_transformer.Transformer(512, 64, 4, 1, 32)
    tokens = torch.randint(0, 512, (2, 32))
    cnn = torch_cnn.ResNet(8, 10)
    images = torch.randn(4, 3, 32, 32)
    print(
        json.dumps(
            {
                "transformer": forward(model.eval(), tokens),
                "cnn": forward(cnn.eval(), images),
                "transformer_gradients": gradients(model, tokens, tokens)[0],
                "cnn_gradients": gradients(cnn, images, torch.randint(0, 10, (4,))),
            }
        )
    )
