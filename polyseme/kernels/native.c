/* The hot loops for a CPU, each on one thread; the caller shares the work out among threads.
 *
 * Every product is computed in tiles of a few rows by four vectors of columns. Weights are packed once into panels, so
 * that a tile reads them in the order in which they lie in memory. A panel holds, for each term of the sum, four
 * "slots" of VECTOR columns. For an LSTM the slots are the four gates of the same VECTOR cells, so a tile of products
 * becomes cells at once, without a detour through memory.
 *
 * A number is the same however many rows are computed with it: a sum starts from its bias and runs over its terms in
 * order, which is also how torch rounds on this kind of processor, and so how the older toolkits' numbers came about.
 * What follows a product is in functions of its own, never inlined, because a compiler may fuse multiplications and
 * additions differently from one inlined copy to the next.
 *
 * Letters: rows of words or sentences; terms of a sum (inputs); columns (outputs).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define VECTOR 16
#define ROWS 6
#elif defined(__AVX2__)
#include <immintrin.h>
#define VECTOR 8
#define ROWS 3
#else
#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif
#define VECTOR 4
#define ROWS 5
#endif

#define SLOTS 4
#define COLUMNS (SLOTS * VECTOR)
#define SLICE 512 /* terms of a panel that are used by all rows before the next */
#define GROUP 16  /* terms of an 8-bit sum are padded to a multiple of this */

typedef float floats __attribute__((vector_size(4 * VECTOR)));
typedef int32_t ints __attribute__((vector_size(4 * VECTOR)));
typedef floats loose_floats __attribute__((aligned(4)));

#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define EXPORT __attribute__((visibility("default")))

INLINE floats load(const float *from) { return *(const loose_floats *)from; }
INLINE void store(float *to, floats values) { *(loose_floats *)to = values; }
INLINE floats splat(float value) { return value - (floats){0}; }
INLINE floats pick(ints where, floats yes, floats no) { return (floats)((where & (ints)yes) | (~where & (ints)no)); }
#if defined(__ARM_NEON) /* the larger and the smaller of two; NaN stays NaN when it comes second */
INLINE floats larger(floats a, floats b) { return vmaxq_f32(a, b); }
INLINE floats smaller(floats a, floats b) { return vminq_f32(a, b); }
#elif defined(__AVX512F__)
INLINE floats larger(floats a, floats b) { return _mm512_max_ps(a, b); }
INLINE floats smaller(floats a, floats b) { return _mm512_min_ps(a, b); }
#elif defined(__AVX2__)
INLINE floats larger(floats a, floats b) { return _mm256_max_ps(a, b); }
INLINE floats smaller(floats a, floats b) { return _mm256_min_ps(a, b); }
#else
INLINE floats larger(floats a, floats b) { return pick(a > b, a, b); }
INLINE floats smaller(floats a, floats b) { return pick(a < b, a, b); }
#endif
INLINE floats clamp(floats x, float limit) { return larger(splat(-limit), smaller(splat(limit), x)); }

/* ---- functions of one variable ---------------------------------------------------------------------------------- */

/* Coefficients are read from memory where they are used: held in registers they would have to be copied each time. */
#if VECTOR == 4
#define ALL(x) {x, x, x, x}
#elif VECTOR == 8
#define ALL(x) {x, x, x, x, x, x, x, x}
#else
#define ALL(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
#endif
static const floats EXPONENTIAL[] = {
    ALL(88.3f),           ALL(-87.3f),           ALL(1.44269504088896341f), ALL(12582912.f),
    ALL(0.693359375f),    ALL(-2.12194440e-4f),  ALL(1.9875691500e-4f),     ALL(1.3981999507e-3f),
    ALL(8.3334519073e-3f), ALL(4.1665795894e-2f), ALL(1.6666665459e-1f),     ALL(5.0000001201e-1f), ALL(1.f)};
static const floats TANGENT[] = {ALL(-5.70498872745e-3f), ALL(2.06390887954e-2f),  ALL(-5.37397155531e-2f),
                                 ALL(1.33314422036e-1f),  ALL(-3.33332819422e-1f), ALL(0.625f)};
#define CONSTANTS(name, table)                                                                                         \
    const floats *name = table;                                                                                        \
    __asm__("" : "+r"(name))

/* Four at a time, step by step: one alone would mostly wait for its own results. */
#define FOUR for (int i = 0; i < 4; i++)

INLINE void exponentials(floats x[4]) { /* after Cephes: within an ulp or so; NaN stays NaN */
    CONSTANTS(c, EXPONENTIAL);
    floats shifted[4], whole[4], sum[4];
    FOUR x[i] = larger(c[1], smaller(c[0], x[i]));
    FOUR shifted[i] = c[3] + x[i] * c[2]; /* rounds to a whole number */
    FOUR whole[i] = shifted[i] - c[3];
    FOUR x[i] = x[i] - whole[i] * c[4];
    FOUR x[i] = x[i] - whole[i] * c[5];
    FOUR sum[i] = c[7] + c[6] * x[i];
    FOUR sum[i] = c[8] + sum[i] * x[i];
    FOUR sum[i] = c[9] + sum[i] * x[i];
    FOUR sum[i] = c[10] + sum[i] * x[i];
    FOUR sum[i] = c[11] + sum[i] * x[i];
    FOUR sum[i] = x[i] + sum[i] * (x[i] * x[i]);
    FOUR x[i] = (sum[i] + c[12]) * (floats)(((ints)shifted[i] - (ints)c[3] + 127) << 23);
}

/* The hyperbolic tangent of x, given e to the power of twice its size. */
INLINE floats tangent(floats x, floats power) {
    CONSTANTS(c, TANGENT);
    floats square = x * x;
    floats sum = c[1] + c[0] * square;
    sum = c[2] + sum * square;
    sum = c[3] + sum * square;
    sum = c[4] + sum * square;
    floats near = x + sum * (square * x);
    floats far = splat(1.f) - splat(2.f) / (power + splat(1.f));
    far = (floats)((ints)far | ((ints)x & (int32_t)0x80000000));
    return pick((floats)((ints)x & 0x7fffffff) < c[5], near, far);
}

INLINE floats twice_size(floats x) { return (floats)((ints)(x + x) & 0x7fffffff); }
INLINE floats sigmoid(floats power) { return splat(1.f) / (splat(1.f) + power); } /* given e to the power of -x */

INLINE void tangents(floats x[4]) {
    floats power[4];
    FOUR power[i] = twice_size(x[i]);
    exponentials(power);
    FOUR x[i] = tangent(x[i], power[i]);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------ */

/* total += rows . panel, term by term. `rows` is a constant wherever this is inlined: sums stay in registers. */
INLINE void add_product(const int rows, const float *a, long stride, long terms, const float *panel,
                        floats total[][SLOTS]) {
    floats sum[ROWS][SLOTS];
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < SLOTS; s++) sum[r][s] = total[r][s];
    long k = 0;
#if defined(__ARM_NEON) /* multiplies by a lane of a vector: four terms of a row are loaded at once */
    for (; k + 4 <= terms; k += 4) {
        floats four[ROWS];
        for (int r = 0; r < rows; r++) four[r] = load(a + r * stride + k);
#pragma GCC unroll 4
        for (int lane = 0; lane < 4; lane++) {
            for (int s = 0; s < SLOTS; s++) {
                floats weight = load(panel + (k + lane) * COLUMNS + s * VECTOR);
                for (int r = 0; r < rows; r++) sum[r][s] += weight * four[r][lane];
            }
        }
    }
#endif
    for (; k < terms; k++) {
        floats weight[SLOTS];
        for (int s = 0; s < SLOTS; s++) weight[s] = load(panel + k * COLUMNS + s * VECTOR);
        for (int r = 0; r < rows; r++) {
            floats value = splat(a[r * stride + k]);
            for (int s = 0; s < SLOTS; s++) sum[r][s] += weight[s] * value;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < SLOTS; s++) total[r][s] = sum[r][s];
}

/* The same in 8 bits: weights have a scale a column, rows a scale each; whole numbers are summed exactly. */
#if defined(__AVX512VNNI__)
typedef int8_t weight8;
#define STEP 4 /* terms multiplied at once */
INLINE ints dot(ints sum, const weight8 *weights, int32_t values) { /* values are 128 too large: see `offset` */
    return (ints)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(values), _mm512_loadu_si512(weights));
}
#define OFFSET 128
#elif defined(__AVX512BW__) || defined(__AVX2__)
typedef int16_t weight8;
#define STEP 2
#define OFFSET 0
#else
typedef int8_t weight8;
#define STEP 4
#define OFFSET 0
#endif

#define PANEL8 (COLUMNS * STEP) /* weights of a panel for STEP terms */

INLINE void add_product8(const int rows, const int8_t *a, long stride, long terms, const weight8 *panel,
                         ints sum[][SLOTS]) {
#if defined(__ARM_FEATURE_DOTPROD)
    for (long k = 0; k < terms; k += GROUP) {
        int8x16_t sixteen[ROWS];
        for (int r = 0; r < rows; r++) sixteen[r] = vld1q_s8(a + r * stride + k);
#define LANE(lane)                                                                                                     \
    for (int s = 0; s < SLOTS; s++) {                                                                                  \
        int8x16_t weight = vld1q_s8(panel + (k / STEP + lane) * PANEL8 + s * VECTOR * STEP);                           \
        for (int r = 0; r < rows; r++)                                                                                 \
            sum[r][s] = (ints)vdotq_laneq_s32((int32x4_t)sum[r][s], weight, sixteen[r], lane);                         \
    }
        LANE(0) LANE(1) LANE(2) LANE(3)
#undef LANE
    }
#elif defined(__AVX512VNNI__)
    for (long k = 0; k < terms; k += STEP)
        for (int r = 0; r < rows; r++) {
            int32_t values;
            memcpy(&values, a + r * stride + k, 4);
            values ^= (int32_t)0x80808080; /* adds 128 to each */
            for (int s = 0; s < SLOTS; s++)
                sum[r][s] = dot(sum[r][s], panel + (k / STEP) * PANEL8 + s * VECTOR * STEP, values);
        }
#elif defined(__AVX2__)
    for (long k = 0; k < terms; k += STEP)
        for (int r = 0; r < rows; r++) {
            const int8_t *pair = a + r * stride + k;
            int32_t values = (int32_t)(((uint32_t)(uint16_t)(int16_t)pair[1] << 16) | (uint16_t)(int16_t)pair[0]);
            for (int s = 0; s < SLOTS; s++) {
                const weight8 *weight = panel + (k / STEP) * PANEL8 + s * VECTOR * STEP;
#if defined(__AVX512BW__)
                sum[r][s] += (ints)_mm512_madd_epi16(_mm512_loadu_si512(weight), _mm512_set1_epi32(values));
#else
                sum[r][s] += (ints)_mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)weight),
                                                     _mm256_set1_epi32(values));
#endif
            }
        }
#else
    for (long k = 0; k < terms; k++)
        for (int r = 0; r < rows; r++)
            for (int s = 0; s < SLOTS; s++)
                for (int lane = 0; lane < VECTOR; lane++)
                    sum[r][s][lane] += (int32_t)a[r * stride + k] *
                                       panel[(k / STEP) * PANEL8 + (s * VECTOR + lane) * STEP + k % STEP];
#endif
}

/* Do something for blocks of at most ROWS rows, as equal as can be: `BODY(rows, first)` with a constant number. */
#define BLOCKS(count, BODY)                                                                                            \
    for (long blocks_ = ((count) + ROWS - 1) / ROWS, block_ = 0, first_ = 0, end_; block_ < blocks_;                   \
         block_++, first_ = end_) {                                                                                    \
        end_ = (block_ + 1) * (count) / blocks_;                                                                       \
        switch (end_ - first_) {                                                                                       \
        case 1: BODY(1, first_); break;                                                                                \
        case 2: BODY(2, first_); break;                                                                                \
        case 3: BODY(3, first_); break;                                                                                \
        BLOCKS_ABOVE_3(BODY)                                                                                           \
        }                                                                                                              \
    }
#if ROWS == 3
#define BLOCKS_ABOVE_3(BODY)
#elif ROWS == 5
#define BLOCKS_ABOVE_3(BODY)                                                                                           \
    case 4: BODY(4, first_); break;                                                                                    \
    case 5: BODY(5, first_); break;
#else
#define BLOCKS_ABOVE_3(BODY)                                                                                           \
    case 4: BODY(4, first_); break;                                                                                    \
    case 5: BODY(5, first_); break;                                                                                    \
    case 6: BODY(6, first_); break;
#endif

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* Column of the weights that stands in a panel's slot and lane, or -1 where there is none. Weights are `groups` equal
 * blocks of columns, side by side; a panel takes as many slots from each. */
static long source(long panel, int slot, int lane, int groups, long width) {
    int share = SLOTS / groups;
    long column = (panel * share + slot % share) * VECTOR + lane;
    return column < width ? (slot / share) * width + column : -1;
}

static long panels_of(int groups, long width) {
    long share = (long)(SLOTS / groups) * VECTOR;
    return (width + share - 1) / share;
}

EXPORT long columns_packed(int groups, long width) { return panels_of(groups, width) * COLUMNS; }
EXPORT long bytes_packed(int groups, long width, long terms, int eight) {
    long padded = (terms + GROUP - 1) / GROUP * GROUP;
    return columns_packed(groups, width) * (eight ? padded * (long)sizeof(weight8) : terms * 4);
}
EXPORT long vector_length(void) { return VECTOR; }

/* Whether this processor has the instructions that this file was compiled for. */
EXPORT int supported(void) {
#if defined(__AVX512VNNI__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vnni");
#elif defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__linux__)
    return (getauxval(AT_HWCAP) >> 20) & 1;
#else
    return 1;
#endif
}

EXPORT void pack(const float *weights, long term_stride, long column_stride, long terms, int groups, long width,
                 float *packed) {
    for (long panel = 0; panel < panels_of(groups, width); panel++)
        for (long k = 0; k < terms; k++)
            for (int s = 0; s < SLOTS; s++)
                for (int lane = 0; lane < VECTOR; lane++) {
                    long column = source(panel, s, lane, groups, width);
                    *packed++ = column < 0 ? 0 : weights[k * term_stride + column * column_stride];
                }
}

/* Scales and, for instructions that want rows without sign, what to take off each sum. */
EXPORT void pack8(const float *weights, long term_stride, long column_stride, long terms, int groups, long width,
                  weight8 *packed, float *scales, int32_t *offsets) {
    long padded = (terms + GROUP - 1) / GROUP * GROUP;
    memset(packed, 0, (size_t)bytes_packed(groups, width, terms, 1));
    for (long panel = 0; panel < panels_of(groups, width); panel++)
        for (int s = 0; s < SLOTS; s++)
            for (int lane = 0; lane < VECTOR; lane++) {
                long column = source(panel, s, lane, groups, width), slot = s * VECTOR + lane;
                float largest = 0;
                int32_t sum = 0;
                for (long k = 0; column >= 0 && k < terms; k++)
                    largest = fmaxf(largest, fabsf(weights[k * term_stride + column * column_stride]));
                float scale = largest / 127.f;
                for (long k = 0; column >= 0 && largest > 0 && k < terms; k++) {
                    int32_t value = (int32_t)rintf(weights[k * term_stride + column * column_stride] / scale);
                    packed[(panel * padded / STEP + k / STEP) * PANEL8 + slot * STEP + k % STEP] = (weight8)value;
                    sum += value;
                }
                scales[panel * COLUMNS + slot] = scale;
                offsets[panel * COLUMNS + slot] = OFFSET * sum;
            }
}

/* One row in 8 bits, padded with zeros to a multiple of GROUP; gives the scale, which is NaN if any number is not finite. */
APART float quantise(const float *row, long terms, int8_t *to) {
    uint32_t most = 0; /* sizes compare as their bits do, and those of infinity and NaN are the largest */
    for (long k = 0; k < terms; k++) {
        uint32_t bits;
        memcpy(&bits, row + k, 4);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    long padded = (terms + GROUP - 1) / GROUP * GROUP;
    if (most >= 0x7f800000) {
        memset(to, 0, (size_t)padded);
        return NAN;
    }
    float largest;
    memcpy(&largest, &most, 4);
    float inverse = largest > 0 ? 127.f / largest : 0;
    for (long k = 0; k < terms; k++) to[k] = (int8_t)(int32_t)(row[k] * inverse + 12582912.f - 12582912.f);
    memset(to + terms, 0, (size_t)(padded - terms));
    return largest / 127.f;
}

/* ---- a layer of sums -------------------------------------------------------------------------------------------- */

typedef struct {
    const void *panels;
    const float *scales;    /* of columns; null for weights in 32 bits */
    const int32_t *offsets; /* of columns; null likewise */
    long terms, columns;    /* columns as packed */
} Weights;

/* Rows as a product wants them: as they are, or in 8 bits with scales. */
typedef struct {
    const float *values;
    long stride;
    int8_t *eight;
    long stride8;
    float *scales;
} Rows;

INLINE long padded_terms(const Weights *w) { return (w->terms + GROUP - 1) / GROUP * GROUP; }

APART void quantise_rows(const Weights *w, Rows *a, long rows) {
    if (!w->scales) return;
    a->stride8 = padded_terms(w);
    for (long r = 0; r < rows; r++) a->scales[r] = quantise(a->values + r * a->stride, w->terms, a->eight + r * a->stride8);
}

APART void rescale(const int rows, const Weights *w, const float *scales, long panel, ints sum[][SLOTS],
                   floats total[][SLOTS]) {
    for (int s = 0; s < SLOTS; s++) {
        long column = panel * COLUMNS + s * VECTOR;
        floats scale = load(w->scales + column);
        ints offset;
        memcpy(&offset, w->offsets + column, sizeof offset);
        for (int r = 0; r < rows; r++)
            total[r][s] += __builtin_convertvector(sum[r][s] - offset, floats) * (scale * splat(scales[r]));
    }
}

/* total += rows . panel for terms [from, to); 8 bits are small enough to be summed in one go. */
INLINE void multiply(const int rows, const Weights *w, const Rows *a, long first, long panel, long from, long to,
                     floats total[][SLOTS]) {
    if (w->scales) {
        ints sum[ROWS][SLOTS] = {0};
        add_product8(rows, a->eight + first * a->stride8, a->stride8, a->stride8,
                     (const weight8 *)w->panels + panel * COLUMNS * a->stride8, sum);
        rescale(rows, w, a->scales + first, panel, sum, total);
    } else {
        add_product(rows, a->values + first * a->stride + from, a->stride, to - from,
                    (const float *)w->panels + (panel * w->terms + from) * COLUMNS, total);
    }
}

/* out = bias + a . weights, or without bias; a slice of a panel that stays in the nearest cache at a time. */
static void product(const Weights *w, const Rows *a, long rows, const float *bias, float *out, long out_stride) {
    long slice = w->scales ? w->terms : SLICE;
    for (long panel = 0; panel < w->columns / COLUMNS; panel++)
        for (long from = 0; from < w->terms; from += slice) {
            long to = from + slice < w->terms ? from + slice : w->terms;
#define PRODUCT_BLOCK(n, first)                                                                                        \
    {                                                                                                                  \
        floats total[ROWS][SLOTS] = {0};                                                                               \
        for (int r = 0; r < n; r++)                                                                                    \
            for (int s = 0; s < SLOTS; s++) {                                                                          \
                long column = panel * COLUMNS + s * VECTOR;                                                            \
                if (from) total[r][s] = load(out + (first + r) * out_stride + column);                                 \
                else if (bias) total[r][s] = load(bias + column);                                                      \
            }                                                                                                          \
        multiply(n, w, a, first, panel, from, to, total);                                                              \
        for (int r = 0; r < n; r++)                                                                                    \
            for (int s = 0; s < SLOTS; s++)                                                                            \
                store(out + (first + r) * out_stride + panel * COLUMNS + s * VECTOR, total[r][s]);                     \
    }
            BLOCKS(rows, PRODUCT_BLOCK)
        }
}

/* out = bias + values . weights; `out` has the packed number of columns; eight and scales are room for 8 bits. */
EXPORT void linear(const Weights *w, const float *bias, const float *values, long stride, long rows, int8_t *eight,
                   float *scales, float *out, long out_stride) {
    Rows a = {values, stride, eight, 0, scales};
    quantise_rows(w, &a, rows);
    product(w, &a, rows, bias, out, out_stride);
}

/* ---- highway ---------------------------------------------------------------------------------------------------- */

APART void let_through(const float *sums, const float *in, float *out, long lanes) {
    floats from = {0}, power[4] = {-load(sums)};
    memcpy(&from, in, (size_t)lanes * 4);
    exponentials(power);
    floats result = from + sigmoid(power[0]) * (larger(splat(0), load(sums + 2 * VECTOR)) - from);
    memcpy(out, &result, (size_t)lanes * 4);
}

/* out = g * relu(transform) + (1 - g) * in, with sums as `linear` gives them for two groups: gate and transform. */
EXPORT void highway(const float *sums, long stride, const float *in, float *out, long rows, long dim) {
    for (long r = 0; r < rows; r++)
        for (long d = 0; d < dim; d += VECTOR) {
            long panel = d / (2 * VECTOR), slot = d / VECTOR % 2;
            let_through(sums + r * stride + panel * COLUMNS + slot * VECTOR, in + r * dim + d, out + r * dim + d,
                        dim - d < VECTOR ? dim - d : VECTOR);
        }
}

/* ---- characters ------------------------------------------------------------------------------------------------- */

/* Largest answer of one width's filters to each word. A sum starts from the bias and runs over places, then dimensions
 * of a character, as torch's convolution has it.
 *
 * spellings: vectors of characters, each word's `stride` floats apart; windows: places to look at in each word. */
EXPORT void convolve(const float *panels, const float *bias, long terms, long columns, const float *spellings,
                     long stride, long dim, const int32_t *windows, long words, float *out, long out_stride,
                     long width) {
    for (long panel = 0; panel < columns / COLUMNS; panel++) {
        const float *weights = panels + panel * COLUMNS * terms;
        for (long word = 0; word < words; word++) {
            const float *spelling = spellings + word * stride;
            floats best[SLOTS];
            for (int s = 0; s < SLOTS; s++) best[s] = splat(-INFINITY);
#define CONVOLVE_BLOCK(n, first)                                                                                       \
    {                                                                                                                  \
        floats sum[ROWS][SLOTS];                                                                                       \
        for (int r = 0; r < n; r++)                                                                                    \
            for (int s = 0; s < SLOTS; s++) sum[r][s] = load(bias + panel * COLUMNS + s * VECTOR);                     \
        add_product(n, spelling + (first)*dim, dim, terms, weights, sum);                                              \
        for (int r = 0; r < n; r++)                                                                                    \
            for (int s = 0; s < SLOTS; s++) best[s] = pick(best[s] != best[s], best[s], larger(best[s], sum[r][s]));   \
    }
            BLOCKS(windows[word], CONVOLVE_BLOCK)
            long left = width - panel * COLUMNS;
            float answers[COLUMNS];
            for (int s = 0; s < SLOTS; s++) store(answers + s * VECTOR, best[s]);
            memcpy(out + word * out_stride + panel * COLUMNS, answers, (size_t)(left < COLUMNS ? left : COLUMNS) * 4);
        }
    }
}

EXPORT void activate(float *values, long count, int is_tanh) {
    for (long first = 0; first < count; first += COLUMNS) {
        long here = count - first < COLUMNS ? count - first : COLUMNS;
        floats x[4] = {0};
        memcpy(x, values + first, (size_t)here * 4);
        if (is_tanh) tangents(x);
        else FOUR x[i] = larger(splat(0), x[i]);
        memcpy(values + first, x, (size_t)here * 4);
    }
}

/* ---- the recurrence --------------------------------------------------------------------------------------------- */

typedef struct {
    Weights recurrent;
    Weights projection; /* without panels there is none: the output is the cell's own */
    const float *bias;  /* as packed */
    float cell_clip, output_clip; /* 0: none */
} Lstm;

/* Cells of some rows, VECTOR of each: products of what was put out before, products of the input, and the cell before
 * become the cell now and what it lets out. */
APART void step_cells(int rows, floats sums[][SLOTS], const float *const *inputs, float *cell, float *active, long stride,
                      float clip) {
    floats open[ROWS + 3], now[ROWS + 3] = {0};
    for (int r = 0; r < rows; r++) {
        floats gate[SLOTS], power[SLOTS];
        FOUR gate[i] = sums[r][i] + load(inputs[r] + i * VECTOR);
        FOUR power[i] = i == 2 ? twice_size(gate[i]) : -gate[i];
        exponentials(power);
        floats added = sigmoid(power[0]) * tangent(gate[2], power[2]);
        now[r] = sigmoid(power[1]) * load(cell + r * stride) + added;
        if (clip > 0) now[r] = clamp(now[r], clip);
        store(cell + r * stride, now[r]);
        open[r] = sigmoid(power[3]);
    }
    for (int r = 0; r < rows; r += 4) tangents(now + r);
    for (int r = 0; r < rows; r++) store(active + r * stride, open[r] * now[r]);
}

APART void clip_row(float *row, long columns, float limit) {
    for (long c = 0; c < columns; c += VECTOR) store(row + c, clamp(load(row + c), limit));
}

/* Words in packed order (see kernels/reference.py), `sizes[t]` of them at step t, forward or from the last step back.
 *
 * gates: products of the inputs with their weights; word w's are row places[w], or row w without places.
 * cells: the distance between rows of cells, at least the cells padded to whole vectors. hidden (sentences, terms), cell (sentences, cells) begin as the state before and end
 * as the state after; rows with no word left are not touched.
 * scratch: active (sentences, cells), projected (sentences, columns), eight and scales for 8 bits.
 * out: (words, terms). */
EXPORT void lstm(const Lstm *net, const float *gates, long gates_stride, const int32_t *places, const int32_t *sizes, long steps,
                 int backward, long cells, float *hidden, float *cell, float *active, float *projected, int8_t *eight,
                 float *scales, float *out) {
    const Weights *recurrent = &net->recurrent, *projection = &net->projection;
    long dim = recurrent->terms, first_word = 0;
    for (long t = 0; t < steps; t++) first_word += backward ? sizes[t] : 0;
    for (long turn = 0; turn < steps; turn++) {
        long t = backward ? steps - 1 - turn : turn, rows = sizes[t];
        if (backward) first_word -= rows;
        Rows before = {hidden, dim, eight, 0, scales};
        quantise_rows(recurrent, &before, rows);
        for (long panel = 0; panel < recurrent->columns / COLUMNS; panel++) {
#define LSTM_BLOCK(n, first)                                                                                           \
    {                                                                                                                  \
        floats total[ROWS][SLOTS];                                                                                     \
        const float *inputs[ROWS];                                                                                     \
        for (int r = 0; r < n; r++) {                                                                                  \
            long word = first_word + first + r;                                                                        \
            inputs[r] = gates + (places ? places[word] : word) * gates_stride + panel * COLUMNS;                       \
            for (int s = 0; s < SLOTS; s++) {                                                                          \
                __builtin_prefetch(inputs[r] + s * VECTOR); /* arrives while the product is computed */                \
                total[r][s] = load(net->bias + panel * COLUMNS + s * VECTOR);                                          \
            }                                                                                                          \
        }                                                                                                              \
        multiply(n, recurrent, &before, first, panel, 0, dim, total);                                                  \
        long at = (first)*cells + panel * VECTOR;                                                                      \
        step_cells(n, total, inputs, cell + at, active + at, cells, net->cell_clip);                                   \
    }
            BLOCKS(rows, LSTM_BLOCK)
        }
        if (projection->panels) {
            Rows after = {active, cells, eight, 0, scales};
            quantise_rows(projection, &after, rows);
            product(projection, &after, rows, 0, projected, projection->columns);
        }
        for (long r = 0; r < rows; r++) {
            const float *row = active + r * cells;
            if (projection->panels) {
                row = projected + r * projection->columns;
                if (net->output_clip > 0) clip_row(projected + r * projection->columns, projection->columns, net->output_clip);
            }
            memcpy(hidden + r * dim, row, (size_t)dim * 4);
            memcpy(out + (first_word + r) * dim, row, (size_t)dim * 4);
        }
        if (!backward) first_word += rows;
    }
}
