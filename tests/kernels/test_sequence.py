"""The recurrence of training gives the reference's numbers, and autograd's gradients."""

import pytest
import torch

from polyseme.kernels.reference import LstmpWeights, LstmState, prepare_lstmp
from polyseme.kernels.sequence import run_sequence

STEPS, ROWS, DIM, CELLS = 7, 5, 6, 9


def make(projected: bool, scale: float):
    generator = torch.Generator().manual_seed(1)
    cells = CELLS if projected else DIM

    def draw(*shape):
        return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).requires_grad_()

    projection = draw(cells, DIM) if projected else None
    weights = LstmpWeights(draw(DIM, 4 * cells), draw(DIM, 4 * cells), draw(4 * cells), projection)
    state = LstmState(draw(ROWS, DIM).detach(), draw(ROWS, cells).detach())
    return weights, draw(STEPS, ROWS, DIM), state, draw(STEPS, ROWS, DIM).detach()


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("clips", [(None, None), (0.5, 0.25), (0.5, None), (None, 0.25)])
@pytest.mark.parametrize("projected", [True, False])
def test_outputs_state_and_gradients_are_those_of_the_reference(projected, clips, scale):
    settings = {"cell_clip": clips[0], "output_clip": clips[1], "forget_bias": 1.0}
    results = []
    for ours in (True, False):
        weights, inputs, state, wanted = make(projected, scale)
        if ours:
            outputs, after = run_sequence(weights, inputs, state, **settings)
        else:
            run = prepare_lstmp(weights, **settings, backward=False)
            packed, after = run(inputs.flatten(0, 1), [ROWS] * STEPS, state)
            outputs = packed.view(STEPS, ROWS, DIM)
        (outputs * wanted).sum().backward()
        leaves = [leaf for leaf in (*weights, inputs) if leaf is not None]
        results.append([outputs, *after, *(leaf.grad for leaf in leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_no_gradient_flows_into_the_state_before():
    weights, inputs, state, _ = make(projected=True, scale=0.3)
    state = LstmState(*(part.requires_grad_() for part in state))
    outputs, after = run_sequence(weights, inputs, state, cell_clip=None, output_clip=None, forget_bias=0.0)
    outputs.sum().backward()
    assert state.hidden.grad is None
    assert not after.hidden.requires_grad
    assert not after.cell.requires_grad
