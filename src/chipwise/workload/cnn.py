"""ResNet and ResNeXt, written out as the convolutions they are."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.workload.model import Conv


def resnet_convs(
    blocks: Sequence[int], *, bottleneck: bool, image: int = 224, groups: int = 1, width: int = 64
) -> tuple[Conv, ...]:
    """The convolutions of a ResNet with the given blocks per stage, as torchvision builds it (v1.5).

    `groups` and `width` (channels per group at the first stage) make a ResNeXt. Equal shapes are one
    entry with a `count`; the last entry always gives the features the classifier reads.

    >>> convs = resnet_convs([3, 4, 6, 3], bottleneck=True)  # ResNet-50
    >>> sum(c.count for c in convs), convs[-1].c_out  # 49 and the four projections
    (53, 2048)
    """
    expansion = 4 if bottleneck else 1
    side = image // 2
    convs = [Conv("stem", 3, 64, 7, side, stride=2)]
    side, c_in = side // 2, 64  # max pooling
    for stage, count in enumerate(blocks):
        planes = 64 * 2**stage
        stride = 1 if stage == 0 else 2
        before, side = side, side // stride
        c_out = planes * expansion
        name = f"stage{stage + 1}"
        if stride != 1 or c_in != c_out:
            convs.append(Conv(f"{name}.project", c_in, c_out, 1, side, stride=stride))
        if bottleneck:
            inner = planes * width * groups // 64
            convs.append(Conv(f"{name}.first.reduce", c_in, inner, 1, before))
            if count > 1:
                convs.append(Conv(f"{name}.reduce", c_out, inner, 1, side, count=count - 1))
            convs.append(Conv(f"{name}.first.spatial", inner, inner, 3, side, groups, stride))
            if count > 1:
                convs.append(Conv(f"{name}.spatial", inner, inner, 3, side, groups, count=count - 1))
            convs.append(Conv(f"{name}.expand", inner, c_out, 1, side, count=count, joins=count))
        else:
            convs.append(Conv(f"{name}.first", c_in, planes, 3, side, stride=stride))
            convs.append(Conv(f"{name}.spatial", planes, planes, 3, side, count=2 * count - 1, joins=count))
        c_in = c_out
    return tuple(convs)
