"""LSTM recurrence for training: rows of equal length in reading order, backpropagation through time by hand.

No row ends early and nothing is packed, so that a step is one product for all rows. The gradient is worked out by hand:
what autograd would do for each step, products with the weights above all, is done once for all steps. A GPU has cuDNN
for this, which knows no clips; with clips the same loop runs there.

Shapes: T steps, B rows, P dim, H cells.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from polyseme.kernels.reference import LstmpWeights, LstmState, add_forget_bias


def run_sequence(
    weights: LstmpWeights,
    inputs: Tensor,
    state: LstmState,
    *,
    cell_clip: float | None,
    output_clip: float | None,
    forget_bias: float,
) -> tuple[Tensor, LstmState]:
    """Run one LSTM layer over inputs (T, B, P): outputs (T, B, P) and the state after them.

    Gradients reach inputs and weights, not the state: it is where the window before was cut off.
    """
    bias = add_forget_bias(weights.bias, forget_bias)
    state = LstmState(state.hidden.detach(), state.cell.detach())
    if inputs.is_cuda and not cell_clip and not output_clip:
        return _run_cudnn(weights._replace(bias=bias), inputs, state)
    clips = cell_clip, output_clip if weights.projection is not None else None
    kind = bias.dtype  # of all that the loop computes, whatever autocast is told
    with torch.autocast(inputs.device.type, enabled=False):
        before = [part.to(kind) for part in state]
        outputs, cell = _Lstmp.apply(inputs.to(kind), *weights._replace(bias=bias), *before, *clips)
    return outputs, LstmState(outputs[-1].detach(), cell)


def _run_cudnn(weights: LstmpWeights, inputs: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
    turned = [weights.input.t().contiguous(), weights.recurrent.t().contiguous()]
    matrices = [*turned, weights.bias, torch.zeros_like(weights.bias)]
    if weights.projection is not None:
        matrices.append(weights.projection.t().contiguous())
    before = (state.hidden.unsqueeze(0).to(inputs.dtype), state.cell.unsqueeze(0).to(inputs.dtype))
    with warnings.catch_warnings(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        warnings.simplefilter("ignore", UserWarning)  # that our matrices are copied into one piece first: 0.1 ms
        outputs, hidden, cell = torch.lstm(inputs, before, matrices, True, 1, 0.0, True, False, False)
    return outputs, LstmState(hidden[0].detach(), cell[0].detach())


class _Lstmp(torch.autograd.Function):
    """An LSTM with projection and clips, forward and back through time."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        inputs: Tensor,
        input_weight: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        hidden: Tensor,
        cell: Tensor,
        cell_clip: float | None,
        output_clip: float | None,
    ) -> tuple[Tensor, Tensor]:
        steps, rows, _ = inputs.shape
        cells = recurrent.shape[1] // 4
        gates = torch.addmm(bias, inputs.flatten(0, 1), input_weight).view(steps, rows, 4 * cells)
        kept = gates.new_empty(steps + 1, rows, cells)  # the cell before each step, and after the last
        curved, inner = (gates.new_empty(steps, rows, cells) for _ in range(2))  # tanh of the cell; before projection
        outputs = inner if projection is None else gates.new_empty(steps, rows, projection.shape[1])
        first = hidden
        kept[0] = cell
        for step in range(steps):
            at_work = gates[step].addmm_(hidden, recurrent)
            at_work[:, : 2 * cells].sigmoid_()
            at_work[:, 2 * cells : 3 * cells].tanh_()
            at_work[:, 3 * cells :].sigmoid_()
            opening, forget, candidate, output = at_work.chunk(4, dim=1)
            cell = torch.mul(forget, kept[step], out=kept[step + 1]).addcmul_(opening, candidate)
            if cell_clip:
                cell.clamp_(-cell_clip, cell_clip)
            torch.tanh(cell, out=curved[step])
            torch.mul(output, curved[step], out=inner[step])
            if projection is not None:
                torch.mm(inner[step], projection, out=outputs[step])
                if output_clip:
                    outputs[step].clamp_(-output_clip, output_clip)
            hidden = outputs[step]
        ctx.save_for_backward(inputs, input_weight, recurrent, projection, first, gates, kept, curved, inner, outputs)
        ctx.clips = cell_clip, output_clip
        after = kept[steps].clone()
        ctx.mark_non_differentiable(after)
        return outputs, after

    @staticmethod
    def backward(ctx: Any, *changes: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        inputs, input_weight, recurrent, projection, first, gates, kept, curved, inner, outputs = ctx.saved_tensors
        cell_clip, output_clip = ctx.clips
        steps, rows, _ = inputs.shape
        slopes, to_cell = _gate_derivatives(gates.view(steps, rows, 4, -1), kept[:-1], curved)
        free = (kept[1:].abs() < cell_clip).to(gates.dtype) if cell_clip else None
        unclipped = (outputs.abs() < output_clip).to(gates.dtype) if output_clip else None
        back_in, back_out = recurrent.t(), None if projection is None else projection.t()
        wanted = changes[0].clone()  # from here on with what flows back from later steps
        change = torch.empty_like(slopes)
        cell_change = torch.zeros_like(kept[0])
        for step in reversed(range(steps)):
            if step + 1 < steps:
                wanted[step].addmm_(change[step + 1].flatten(1), back_in)
            if unclipped is not None:
                wanted[step].mul_(unclipped[step])
            inner_change = wanted[step] if back_out is None else wanted[step] @ back_out
            cell_change.addcmul_(inner_change, to_cell[step])
            if free is not None:
                cell_change.mul_(free[step])
            torch.mul(cell_change.unsqueeze(1), slopes[step, :, :3], out=change[step, :, :3])
            torch.mul(inner_change, slopes[step, :, 3], out=change[step, :, 3])
            cell_change.mul_(gates[step, :, gates.shape[2] // 4 : gates.shape[2] // 2])
        flat, before = change.view(steps * rows, -1), torch.cat([first.unsqueeze(0), outputs[:-1]])
        return (
            (flat @ input_weight.t()).view_as(inputs),
            inputs.flatten(0, 1).t() @ flat,
            before.flatten(0, 1).t() @ flat,
            flat.sum(dim=0),
            None if projection is None else inner.flatten(0, 1).t() @ wanted.flatten(0, 1),
            *(None,) * 4,
        )


def _gate_derivatives(gates: Tensor, before: Tensor, curved: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives of cell and output by the gates' pre-activations (T, B, 4, H), of output by cell (T, B, H)."""
    opening, forget, candidate, output = gates.unbind(2)
    slopes = torch.empty_like(gates)
    torch.mul(opening * (1 - opening), candidate, out=slopes[:, :, 0])
    torch.mul(forget * (1 - forget), before, out=slopes[:, :, 1])
    torch.mul(1 - candidate * candidate, opening, out=slopes[:, :, 2])
    torch.mul(output * (1 - output), curved, out=slopes[:, :, 3])
    return slopes, output * (1 - curved * curved)
