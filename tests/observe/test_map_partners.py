"""Pictures and their label maps, beside each other and not."""

import torch

from sawbones.observe.signals.map_partners import compare_all


def _blobs(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(24.0)
    pairs = []
    for _ in range(count):
        y, x = (torch.rand(2, 3, generator=generator) * 24).unbind()
        mask = (((rows[:, None, None] - y) ** 2 + (rows[None, :, None] - x) ** 2) < 14).any(-1)
        pairs.append(
            (mask[None].float() + 0.5 * torch.randn(1, 24, 24, generator=generator), mask.long())
        )
    return pairs


def test_the_map_that_fits_is_known_to_be_the_own_one_or_another() -> None:
    pairs = _blobs(64)
    beside = compare_all(pairs)
    apart = compare_all([(picture, pairs[(i + 7) % 64][1]) for i, (picture, _) in enumerate(pairs)])
    assert beside is not None and beside.told > 0.5 and beside.own == 1.0
    assert (
        apart is not None
        and apart.told > 0.5
        and apart.own == 0.0
        and apart.beside < 0.3 * apart.fit
    )


def test_pictures_that_tell_nothing_of_their_maps_have_no_partner() -> None:
    found = compare_all(
        [
            (torch.randn(1, 24, 24, generator=torch.Generator().manual_seed(i)), m)
            for i, (_, m) in enumerate(_blobs(64))
        ]
    )
    assert found is not None and found.told < 0.1
