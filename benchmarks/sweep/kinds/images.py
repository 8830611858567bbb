"""Stencils and filters of images, with and without borders; convolutions of series."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

SIDES = {"height": (16, 600), "width": (16, 600)}


def image(rng: Numbers, height: int, width: int) -> tuple[Any, ...]:
    return (rng.normal(size=(height, width)),)


def image_and_kernel(rng: Numbers, height: int, width: int, side: int = 3) -> tuple[Any, ...]:
    return rng.normal(size=(height, width)), rng.normal(size=(side, side))


# --- a blur of inner pixels -------------------------------------------------------------------------------------------


def blur_sum(lib: Any, im: Any) -> Any:
    return (im[:-2, 1:-1] + im[2:, 1:-1] + im[1:-1, :-2] + im[1:-1, 2:] + 4 * im[1:-1, 1:-1]) / 8


def blur_passes(lib: Any, im: Any) -> Any:
    middle = im[1:-1, 1:-1]
    rows = im[:-2, 1:-1] + 2 * middle + im[2:, 1:-1]
    columns = im[1:-1, :-2] + 2 * middle + im[1:-1, 2:]
    return 0.125 * (rows + columns)


def blur_loops(im: Any) -> Any:
    height, width = im.shape
    out = np.empty((height - 2, width - 2), im.dtype)
    for i in range(1, height - 1):
        for j in range(1, width - 1):
            around = im[i - 1, j] + im[i + 1, j] + im[i, j - 1] + im[i, j + 1]
            out[i - 1, j - 1] = (around + 4 * im[i, j]) / 8
    return out


# --- a filter of 3 x 3 whose border repeats the edge, or mirrors it, or is zero, or goes round ------------------------


def filtered(mode: str) -> Any:
    def text(lib: Any, im: Any, k: Any) -> Any:
        padded, (height, width), out = lib.np.pad(im, 1, mode=mode), im.shape, 0.0
        for i in range(3):
            for j in range(3):
                out = out + k[i, j] * padded[i : i + height, j : j + width]
        return out

    return text


def filter_edge_loops(im: Any, k: Any) -> Any:
    height, width = im.shape
    out = np.empty_like(im)
    for y in range(height):
        for x in range(width):
            total = 0.0
            for i in range(3):
                row = min(max(y + i - 1, 0), height - 1)
                for j in range(3):
                    total += k[i, j] * im[row, min(max(x + j - 1, 0), width - 1)]
            out[y, x] = total
    return out


def filter_zero_loops(im: Any, k: Any) -> Any:
    height, width = im.shape
    out = np.empty_like(im)
    for y in range(height):
        for x in range(width):
            total = 0.0
            for i in range(max(0, 1 - y), min(3, height + 1 - y)):
                for j in range(max(0, 1 - x), min(3, width + 1 - x)):
                    total += k[i, j] * im[y + i - 1, x + j - 1]
            out[y, x] = total
    return out


# --- heat that spreads on a torus or between walls --------------------------------------------------------------------


def heat_data(rng: Numbers, height: int, width: int, steps: int) -> tuple[Any, ...]:
    return rng.normal(size=(height, width)), np.zeros(steps)


def heat_roll(lib: Any, im: Any, ticks: Any) -> Any:
    def step(im: Any, _: Any) -> Any:
        roll = lib.np.roll
        return im + 0.1 * (roll(im, 1, 0) + roll(im, -1, 0) + roll(im, 1, 1) + roll(im, -1, 1) - 4 * im), None

    return lib.lax.scan(step, im, None, length=ticks.shape[0])[0]


def heat_wrap(lib: Any, im: Any, ticks: Any) -> Any:
    def step(_: Any, im: Any) -> Any:
        p = lib.np.pad(im, 1, mode="wrap")
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        return im + 0.1 * (around - 4 * im)

    return lib.lax.fori_loop(0, ticks.shape[0], step, im)


def heat_loops(im: Any, ticks: Any) -> Any:
    height, width = im.shape
    one, other = im.copy(), np.empty_like(im)
    for _ in range(ticks.shape[0]):
        for y in range(height):
            up, down = y - 1 if y > 0 else height - 1, y + 1 if y < height - 1 else 0
            for x in range(width):
                left, right = x - 1 if x > 0 else width - 1, x + 1 if x < width - 1 else 0
                around = one[up, x] + one[down, x] + one[y, left] + one[y, right]
                other[y, x] = one[y, x] + 0.1 * (around - 4 * one[y, x])
        one, other = other, one
    return one


# --- edges: the size of the gradient ----------------------------------------------------------------------------------


def edges_slices(lib: Any, im: Any) -> Any:
    down = im[2:, :-2] + 2 * im[2:, 1:-1] + im[2:, 2:] - im[:-2, :-2] - 2 * im[:-2, 1:-1] - im[:-2, 2:]
    right = im[:-2, 2:] + 2 * im[1:-1, 2:] + im[2:, 2:] - im[:-2, :-2] - 2 * im[1:-1, :-2] - im[2:, :-2]
    return lib.np.sqrt(down**2 + right**2)


def edges_separate(lib: Any, im: Any) -> Any:
    smooth = im[:, :-2] + 2 * im[:, 1:-1] + im[:, 2:]
    steep = im[:, 2:] - im[:, :-2]
    return lib.np.hypot(smooth[2:] - smooth[:-2], steep[:-2] + 2 * steep[1:-1] + steep[2:])


def edges_loops(im: Any) -> Any:
    height, width = im.shape
    out = np.empty((height - 2, width - 2), im.dtype)
    for i in range(height - 2):
        for j in range(width - 2):
            down = im[i + 2, j] + 2 * im[i + 2, j + 1] + im[i + 2, j + 2]
            down -= im[i, j] + 2 * im[i, j + 1] + im[i, j + 2]
            right = im[i, j + 2] + 2 * im[i + 1, j + 2] + im[i + 2, j + 2]
            right -= im[i, j] + 2 * im[i + 1, j] + im[i + 2, j]
            out[i, j] = np.sqrt(down * down + right * right)
    return out


# --- total variation and its gradient ---------------------------------------------------------------------------------


def variation_data(rng: Numbers, height: int, width: int) -> tuple[Any, ...]:
    return tuple(rng.normal(size=(2, height, width)))


def variation_slices(lib: Any, im: Any, seen: Any) -> Any:
    down, right = im[1:, :-1] - im[:-1, :-1], im[:-1, 1:] - im[:-1, :-1]
    return 0.5 * lib.np.sum((im - seen) ** 2) + lib.np.sum(lib.np.sqrt(down**2 + right**2 + 0.01))


def variation_diff(lib: Any, im: Any, seen: Any) -> Any:
    down, right = lib.np.diff(im, axis=0)[:, :-1], lib.np.diff(im, axis=1)[:-1]
    off = im - seen
    return (off * off).sum() / 2 + lib.np.sqrt(0.01 + lib.np.square(down) + lib.np.square(right)).sum()


def variation_loops(im: Any, seen: Any) -> Any:
    height, width = im.shape
    total = 0.0
    for i in range(height):
        for j in range(width):
            total += 0.5 * (im[i, j] - seen[i, j]) ** 2
            if i < height - 1 and j < width - 1:
                total += np.sqrt((im[i + 1, j] - im[i, j]) ** 2 + (im[i, j + 1] - im[i, j]) ** 2 + 0.01)
    return total


def variation_slopes(im: Any, seen: Any) -> Any:
    height, width = im.shape
    total, slopes = 0.0, im - seen
    for i in range(height):
        for j in range(width):
            total += 0.5 * (im[i, j] - seen[i, j]) ** 2
            if i < height - 1 and j < width - 1:
                down, right = im[i + 1, j] - im[i, j], im[i, j + 1] - im[i, j]
                size = np.sqrt(down * down + right * right + 0.01)
                total += size
                slopes[i + 1, j] += down / size
                slopes[i, j + 1] += right / size
                slopes[i, j] -= (down + right) / size
    return total, slopes


# --- the largest of blocks of 2 x 2 -----------------------------------------------------------------------------------


def pool_reshape(lib: Any, im: Any) -> Any:
    height, width = im.shape[0] // 2, im.shape[1] // 2
    return lib.np.max(im[: 2 * height, : 2 * width].reshape(height, 2, width, 2), axis=(1, 3))


def pool_strides(lib: Any, im: Any) -> Any:
    im = im[: im.shape[0] // 2 * 2, : im.shape[1] // 2 * 2]
    most = lib.np.maximum
    return most(most(im[::2, ::2], im[1::2, ::2]), most(im[::2, 1::2], im[1::2, 1::2]))


def pool_loops(im: Any) -> Any:
    height, width = im.shape[0] // 2, im.shape[1] // 2
    out = np.empty((height, width), im.dtype)
    for i in range(height):
        for j in range(width):
            upper = max(im[2 * i, 2 * j], im[2 * i, 2 * j + 1])
            out[i, j] = max(upper, im[2 * i + 1, 2 * j], im[2 * i + 1, 2 * j + 1])
    return out


# --- a convolution of a series with a short filter --------------------------------------------------------------------


def series_data(rng: Numbers, length: int, taps: int) -> tuple[Any, ...]:
    return rng.normal(size=length), rng.normal(size=taps)


def series_convolve(lib: Any, x: Any, k: Any) -> Any:
    return lib.np.convolve(x, k, mode="valid")


def series_unrolled(lib: Any, x: Any, k: Any) -> Any:
    taps = k.shape[0]
    n = x.shape[0] - taps + 1
    return sum(k[taps - 1 - i] * x[i : i + n] for i in range(taps))


def series_windows(lib: Any, x: Any, k: Any) -> Any:
    n = x.shape[0] - k.shape[0] + 1
    return x[lib.np.arange(n)[:, None] + lib.np.arange(k.shape[0])] @ k[::-1]


def series_loops(x: Any, k: Any) -> Any:
    taps = k.shape[0]
    out = np.empty(x.shape[0] - taps + 1, x.dtype)
    for i in range(out.shape[0]):
        total = 0.0
        for j in range(taps):
            total += k[taps - 1 - j] * x[i + j]
        out[i] = total
    return out


KINDS = (
    Kind("blur", SIDES, image, {"sum": blur_sum, "passes": blur_passes}, blur_loops),
    Kind("filter-edge", SIDES, image_and_kernel, {"edge": filtered("edge")}, filter_edge_loops),
    Kind("filter-zero", SIDES, image_and_kernel, {"zero": filtered("constant")}, filter_zero_loops),
    Kind(
        "heat",
        {"height": (8, 200), "width": (8, 200), "steps": (5, 50)},
        heat_data,
        {"roll": heat_roll, "wrap": heat_wrap},
        heat_loops,
    ),
    Kind("edges", SIDES, image, {"slices": edges_slices, "separate": edges_separate}, edges_loops),
    Kind(
        "variation",
        SIDES,
        variation_data,
        {"slices": variation_slices, "diff": variation_diff},
        variation_loops,
        variation_slopes,
        wrt=(0,),
    ),
    Kind("pool", SIDES, image, {"reshape": pool_reshape, "strides": pool_strides}, pool_loops),
    Kind(
        "series",
        {"length": (100, 50000), "taps": (2, 32)},
        series_data,
        {"convolve": series_convolve, "unrolled": series_unrolled, "windows": series_windows},
        series_loops,
    ),
)
