"""Triton kernel of the LSTM cell update (`lstm_cell.step_cells`). Imported only where Triton is."""

# pyright: reportMissingImports=false, reportIndexIssue=false
# ruff: noqa: ANN001, ANN202, N803 - what Triton compiles is not quite Python
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # cells that one program works on


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _tanh(x):
    size = tl.abs(x)
    far = 1 - 2 / (tl.exp(2 * size) + 1)
    square = x * x  # near zero the above loses digits
    sum = 0.0206390887954 - 0.00570498872745 * square
    sum = -0.0537397155531 + square * sum
    sum = 0.133314422036 + square * sum
    sum = -0.333332819422 + square * sum
    near = size + size * square * sum
    return tl.where(x < 0, -1.0, 1.0) * tl.where(size < 0.625, near, far)


@triton.jit
def _gate(inputs, recurrent, bias, there):
    total = tl.load(inputs, there, 0.0).to(tl.float32) + tl.load(recurrent, there, 0.0).to(tl.float32)
    return total + tl.load(bias, there, 0.0)


@triton.jit
def _step(
    inputs,
    places,
    recurrent,
    bias,
    cell,
    out,
    first,
    input_stride,
    place_stride,
    recurrent_stride,
    cell_stride,
    out_stride,
    clip,
    H: tl.constexpr,
    PLACED: tl.constexpr,
    CLIPPED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    way = tl.program_id(2).to(tl.int64)
    cells = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = cells < H
    source = row + first
    if PLACED:
        source = tl.load(places + way * place_stride + source).to(tl.int64)
    inputs += way * input_stride + source * 4 * H + cells
    recurrent += way * recurrent_stride + row * 4 * H + cells
    bias += way * 4 * H + cells
    opening = _sigmoid(_gate(inputs, recurrent, bias, there))
    forget = _sigmoid(_gate(inputs + H, recurrent + H, bias + H, there))
    candidate = _tanh(_gate(inputs + 2 * H, recurrent + 2 * H, bias + 2 * H, there))
    output = _sigmoid(_gate(inputs + 3 * H, recurrent + 3 * H, bias + 3 * H, there))
    cell += way * cell_stride + row * H + cells
    now = forget * tl.load(cell, there, 0.0) + opening * candidate
    if CLIPPED:
        now = tl.minimum(tl.maximum(now, -clip), clip)
    tl.store(cell, now, there)
    tl.store(out + way * out_stride + row * H + cells, (output * _tanh(now)).to(out.dtype.element_ty), there)


def step_cells(
    inputs: Tensor,
    places: Tensor | None,
    first: int,
    recurrent: Tensor,
    bias: Tensor,
    cell: Tensor,
    out: Tensor,
    clip: float,
) -> None:
    """The LSTM cell update; the arguments are the fields of `lstm_cell.Gates`, then those of `lstm_cell.step_cells`."""
    ways, rows, cells = out.shape
    _step[(rows, triton.cdiv(cells, BLOCK), ways)](
        inputs,
        places,
        recurrent,
        bias,
        cell,
        out,
        first,
        inputs.stride(0),
        0 if places is None else places.stride(0),
        recurrent.stride(0),
        cell.stride(0),
        out.stride(0),
        clip,
        H=cells,
        PLACED=places is not None,
        CLIPPED=clip > 0,
        BLOCK=BLOCK,
    )
