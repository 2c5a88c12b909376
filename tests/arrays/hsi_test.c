/* SPDX-License-Identifier: MIT */
/* libhsi as a program in C uses it. Every check that fails is printed; the exit code tells whether one did.
 */
#define _POSIX_C_SOURCE 200809L
#include "hsi.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BANDS = 8, LINES = 20, SAMPLES = 30, PIXELS = LINES * SAMPLES };

static int g_failed = 0;
#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                       \
            g_failed = 1;                                                                                    \
        }                                                                                                    \
    } while (0)

static void fill(float* values) {
    unsigned seed = 7;
    int i;
    for (i = 0; i < BANDS * PIXELS; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(1 + i / PIXELS) + (float)(seed >> 16) / 65536.0f;
    }
}

/* An array of floats, bands first. */
static hsi_array array_of(float* values, int64_t bands) {
    hsi_array array = HSI_ARRAY;
    array.data = values;
    array.shape[0] = bands;
    array.shape[1] = LINES;
    array.shape[2] = SAMPLES;
    array.strides[0] = PIXELS * (int64_t)sizeof(float);
    array.strides[1] = SAMPLES * (int64_t)sizeof(float);
    array.strides[2] = (int64_t)sizeof(float);
    return array;
}

/* The same algorithm on pixels whose bands lie side by side. */
static void test_run_and_strides(void) {
    static float in[BANDS * PIXELS], out[BANDS * PIXELS], turned[BANDS * PIXELS], turned_out[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS);
    hsi_array pixels = array_of(turned, BANDS), pixels_out = array_of(turned_out, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}}, others[] = {{"src", &pixels, NULL}};
    const hsi_output outputs[] = {{"dst", &target}}, other_outputs[] = {{"dst", &pixels_out}};
    hsi_result* result = NULL;
    int b, p;
    fill(in);
    for (b = 0; b < BANDS; ++b)
        for (p = 0; p < PIXELS; ++p)
            turned[p * BANDS + b] = in[b * PIXELS + p];
    pixels.strides[0] = pixels_out.strides[0] = (int64_t)sizeof(float);
    pixels.strides[1] = pixels_out.strides[1] = SAMPLES * BANDS * (int64_t)sizeof(float);
    pixels.strides[2] = pixels_out.strides[2] = BANDS * (int64_t)sizeof(float);
    CHECK(hsi_run("spp", "{\"ws\": 5, \"threads\": 2}", inputs, 1, outputs, 1, NULL, &result) == HSI_OK);
    CHECK(strcmp(hsi_result_message(result), "") == 0);
    CHECK(strstr(hsi_result_json(result), "\"dst\"") != NULL);
    hsi_result_free(result);
    CHECK(hsi_run("spp", "{\"ws\": 5}", others, 1, other_outputs, 1, NULL, &result) == HSI_OK);
    hsi_result_free(result);
    for (b = 0; b < BANDS; ++b)
        for (p = 0; p < PIXELS; ++p)
            CHECK(memcmp(&turned_out[p * BANDS + b], &out[b * PIXELS + p], sizeof(float)) == 0);
    CHECK(out[0] != in[0]);
}

struct memory {
    float* values;
    int calls;
};

static int allocate(void* user, const char* role, const char* info, hsi_array* array) {
    struct memory* memory = user;
    const size_t bytes = sizeof(float) * (size_t)(array->shape[0] * array->shape[1] * array->shape[2]);
    CHECK(strcmp(role, "dst") == 0 && strstr(info, "\"shape\"") != NULL && array->type == HSI_FLOAT32);
    ++memory->calls;
    memory->values = malloc(bytes);
    array->data = memory->values;
    array->strides[2] = (int64_t)sizeof(float);
    array->strides[1] = array->shape[2] * (int64_t)sizeof(float);
    array->strides[0] = array->shape[1] * array->strides[1];
    return memory->values == NULL;
}

/* Results in memory that the caller makes when their shape is known, and a model that goes out and in. */
static void test_hooks_and_models(void) {
    static float in[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS), target = HSI_ARRAY;
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}, {"model", NULL}};
    struct memory memory = {NULL, 0}, again = {NULL, 0};
    hsi_hooks hooks;
    hsi_result *result = NULL, *second = NULL;
    hsi_input with_model[2];
    memset(&hooks, 0, sizeof hooks);
    hooks.size = sizeof hooks;
    hooks.user = &memory;
    hooks.allocate = allocate;
    fill(in);
    CHECK(hsi_run("pca", "{\"nc\": 3}", inputs, 1, outputs, 2, &hooks, &result) == HSI_OK);
    CHECK(memory.calls == 1 && target.shape[0] == 3 && target.data == memory.values);
    CHECK(hsi_result_text(result, "model") != NULL && hsi_result_text(result, "dst") == NULL);
    with_model[0] = inputs[0];
    with_model[1].role = "apply";
    with_model[1].array = NULL;
    with_model[1].text = hsi_result_text(result, "model");
    hooks.user = &again;
    CHECK(hsi_run("pca", "{\"nc\": 3}", with_model, 2, outputs, 1, &hooks, &second) == HSI_OK);
    CHECK(again.calls == 0);
    hsi_result_free(second);
    hsi_result_free(result);
    free(memory.values);
}

static int allocate_otherwise(void* user, const char* role, const char* info, hsi_array* array) {
    (void)role;
    (void)info;
    array->data = user;
    array->strides[0] = PIXELS * (int64_t)sizeof(double);
    array->strides[1] = SAMPLES * (int64_t)sizeof(double);
    array->strides[2] = (int64_t)sizeof(double);
    array->type = HSI_FLOAT64;
    return 0;
}

static int allocate_far(void* user, const char* role, const char* info, hsi_array* array) {
    (void)role;
    (void)info;
    array->data = user;
    array->strides[0] = array->strides[1] = array->strides[2] = INT64_MAX;
    return 0;
}

/* What the hook makes of an array is looked at, too. */
static void test_bad_hooks(void) {
    static float in[BANDS * PIXELS];
    static double out[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS);
    const hsi_input input = {"src", &source, NULL};
    const hsi_output output = {"dst", NULL};
    hsi_result* result = NULL;
    hsi_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.size = sizeof hooks;
    hooks.user = out;
    fill(in);
    hooks.allocate = allocate_otherwise;
    CHECK(hsi_run("spp", NULL, &input, 1, &output, 1, &hooks, &result) == HSI_USAGE);
    CHECK(strstr(hsi_result_message(result), "'allocate' changed") != NULL);
    hsi_result_free(result);
    hooks.allocate = allocate_far;
    CHECK(hsi_run("spp", NULL, &input, 1, &output, 1, &hooks, &result) == HSI_USAGE);
    CHECK(strstr(hsi_result_message(result), "its strides") != NULL);
    hsi_result_free(result);
}

static void test_plan(void) {
    static float in[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", NULL}};
    hsi_result* result = NULL;
    fill(in);
    CHECK(hsi_plan("mnf", "{\"nc\": 4}", inputs, 1, outputs, 1, NULL, &result) == HSI_OK);
    CHECK(strstr(hsi_result_json(result), "\"shape\":[4,20,30],\"type\":\"Float32\"") != NULL);
    CHECK(strstr(hsi_result_json(result), "\"buffer_bytes\"") != NULL);
    hsi_result_free(result);
}

/* Spectra and labels are arrays, too: names of spectra, of classes, and a mask. */
static void test_libraries_and_labels(void) {
    static float in[BANDS * PIXELS], out[2 * PIXELS];
    static unsigned char labels[PIXELS], mask[PIXELS], map[PIXELS];
    static const char* const names[] = {"roof", "road"};
    static const char* const classes[] = {NULL, "water", "soil"};
    float spectra[2 * BANDS];
    hsi_array source = array_of(in, BANDS), target = array_of(out, 2), library = HSI_ARRAY, truth = HSI_ARRAY;
    hsi_array map_out;
    hsi_input inputs[] = {{"src", NULL, NULL}, {"target", NULL, NULL}};
    hsi_output outputs[] = {{"dst", NULL}};
    hsi_result *result = NULL, *mapped = NULL;
    int k;
    fill(in);
    for (k = 0; k < PIXELS; ++k) {
        mask[k] = k % 7 != 0;
        labels[k] = (unsigned char)(k % 3);
    }
    for (k = 0; k < BANDS; ++k) { /* a pixel a spectrum, its values side by side */
        spectra[k] = in[k * PIXELS + 31];
        spectra[BANDS + k] = in[k * PIXELS + 99];
    }
    library.data = spectra;
    library.shape[0] = BANDS;
    library.shape[1] = 1;
    library.shape[2] = 2;
    library.strides[0] = (int64_t)sizeof(float);
    library.strides[1] = library.strides[2] = BANDS * (int64_t)sizeof(float);
    library.names = names;
    library.name_count = 2;
    source.mask = mask;
    source.mask_strides[0] = SAMPLES;
    source.mask_strides[1] = 1;
    inputs[0].array = &source;
    inputs[1].array = &library;
    outputs[0].array = &target;
    CHECK(hsi_run("detect", "{\"method\": \"ace\"}", inputs, 2, outputs, 1, NULL, &result) == HSI_OK);
    CHECK(strstr(hsi_result_json(result), "\"name\":\"road\"") != NULL);
    CHECK(out[0] != out[0] && fabsf(out[31] - 1) < 1e-4f && fabsf(out[PIXELS + 99] - 1) < 1e-4f);
    hsi_result_free(result);

    source.mask = NULL;
    truth.data = labels;
    truth.type = HSI_UINT8;
    truth.shape[0] = 1;
    truth.shape[1] = LINES;
    truth.shape[2] = SAMPLES;
    truth.strides[0] = PIXELS;
    truth.strides[1] = SAMPLES;
    truth.strides[2] = 1;
    map_out = truth;
    map_out.data = map;
    truth.names = classes;
    truth.name_count = 3;
    inputs[1].role = "labels";
    inputs[1].array = &truth;
    outputs[0].role = "model";
    outputs[0].array = NULL;
    CHECK(hsi_run("svm_train", "{\"C\": 2, \"gamma\": 1}", inputs, 2, outputs, 1, NULL, &result) == HSI_OK);
    CHECK(hsi_result_text(result, "model") != NULL &&
          strstr(hsi_result_text(result, "model"), "water") != NULL);
    inputs[1].role = "model";
    inputs[1].array = NULL;
    inputs[1].text = hsi_result_text(result, "model");
    outputs[0].role = "dst";
    outputs[0].array = &map_out;
    CHECK(hsi_run("svm_classify", NULL, inputs, 2, outputs, 1, NULL, &mapped) == HSI_OK);
    CHECK(strstr(hsi_result_json(mapped), "\"soil\"") != NULL && map[0] >= 1 && map[0] <= 2 &&
          map_out.has_nodata == 1);
    hsi_result_free(mapped);
    hsi_result_free(result);
}

/* Code, and a word of the message. */
static void refused(int code, const char* word, const char* algorithm, const char* options,
                    const hsi_input* inputs, size_t input_count, const hsi_output* outputs,
                    size_t output_count) {
    hsi_result* result = NULL;
    const int got = hsi_run(algorithm, options, inputs, input_count, outputs, output_count, NULL, &result);
    if (got != code || strstr(hsi_result_message(result), word) == NULL) {
        fprintf(stderr, "'%s' expected in code %d: %s\n", word, got, hsi_result_message(result));
        g_failed = 1;
    }
    hsi_result_free(result);
}

/* Neither hsi_run() nor hsi_plan() touches an array whose elements cannot all have addresses, and both take
 * any step along an axis that has one element. */
static void test_strides(void) {
    static const int64_t far[] = {INT64_MAX, INT64_MIN, INT64_MAX / 3, INT64_MIN / 5};
    static float in[BANDS * PIXELS], out[BANDS * PIXELS];
    static unsigned char mask[PIXELS];
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS);
    const hsi_input input = {"src", &source, NULL};
    const hsi_output output = {"dst", &target};
    hsi_result* result = NULL;
    size_t k;
    int axis;
    fill(in);
    memset(mask, 1, sizeof mask);
    for (k = 0; k < sizeof far / sizeof far[0]; ++k) {
        for (axis = 0; axis < 3; ++axis) {
            source.strides[axis] = far[k];
            refused(HSI_USAGE, "src: its strides", "spp", NULL, &input, 1, &output, 1);
            CHECK(hsi_plan("spp", NULL, &input, 1, &output, 1, NULL, &result) == HSI_USAGE);
            hsi_result_free(result);
            source = array_of(in, BANDS);
            target.strides[axis] = far[k];
            refused(HSI_USAGE, "dst: its strides", "spp", NULL, &input, 1, &output, 1);
            target = array_of(out, BANDS);
        }
        for (axis = 0; axis < 2; ++axis) {
            source.mask = mask;
            source.mask_strides[0] = SAMPLES;
            source.mask_strides[1] = 1;
            source.mask_strides[axis] = far[k];
            refused(HSI_USAGE, "src's mask: its strides", "spp", NULL, &input, 1, &output, 1);
            source.mask = NULL;
        }
    }
    /* each of them would do alone */
    source.strides[0] = INT64_MAX / (BANDS - 1);
    source.strides[1] = INT64_MIN / (LINES - 1);
    refused(HSI_USAGE, "src: its strides", "spp", NULL, &input, 1, &output, 1);
    source = array_of(in, BANDS);
    source.strides[2] = -(int64_t)((uintptr_t)in / (SAMPLES - 1)) - 8; /* below the first address */
    refused(HSI_USAGE, "src: its strides", "spp", NULL, &input, 1, &output, 1);
    source = array_of(in, BANDS);
    for (k = 0; k < sizeof far / sizeof far[0]; ++k) {
        source.shape[1] = target.shape[1] = target.shape[0] = 1;
        source.strides[1] = target.strides[1] = target.strides[0] = far[k];
        CHECK(hsi_run("pca", "{\"nc\": 1}", &input, 1, &output, 1, NULL, &result) == HSI_OK);
        hsi_result_free(result);
    }
}

static void test_refusals(void) {
    static float in[BANDS * PIXELS], out[BANDS * PIXELS];
    static const char* const names[BANDS + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS), other;
    hsi_input input = {"src", NULL, NULL};
    hsi_output output = {"dst", NULL};
    input.array = &source;
    output.array = &target;
    fill(in);
    refused(HSI_USAGE, "unknown algorithm", "sp", NULL, &input, 1, &output, 1);
    refused(HSI_USAGE, "unknown algorithm", NULL, NULL, &input, 1, &output, 1);
    refused(HSI_USAGE, "not a JSON object", "spp", "ws=7", &input, 1, &output, 1);
    refused(HSI_USAGE, "unknown option", "spp", "{\"wsx\": 7}", &input, 1, &output, 1);
    refused(HSI_USAGE, "applies to files", "spp", "{\"of\": \"ENVI\"}", &input, 1, &output, 1);
    refused(HSI_USAGE, "-ws", "spp", "{\"ws\": 6}", &input, 1, &output, 1);
    refused(HSI_USAGE, "-ws", "spp", "{\"ws\": \"wide\"}", &input, 1, &output, 1);
    refused(HSI_USAGE, "larger than the scene", "spp", "{\"ws\": 63}", &input, 1, &output, 1);
    refused(HSI_USAGE, "src is missing", "spp", NULL, NULL, 0, &output, 1);
    refused(HSI_USAGE, "dst is missing", "spp", NULL, &input, 1, NULL, 0);
    refused(HSI_USAGE, "inputs is a null pointer", "spp", NULL, NULL, 1, &output, 1);
    refused(HSI_USAGE, "outputs is a null pointer", "spp", NULL, &input, 1, NULL, 1);
    input.role = "scene";
    refused(HSI_USAGE, "has no input 'scene'", "spp", NULL, &input, 1, &output, 1);
    input.role = NULL;
    refused(HSI_USAGE, "no role", "spp", NULL, &input, 1, &output, 1);
    input.role = "src";
    other = source;
    other.size = 8;
    input.array = &other;
    refused(HSI_USAGE, "'size'", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.type = 99;
    refused(HSI_USAGE, "not a data type", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.shape[1] = 0;
    refused(HSI_USAGE, "no values", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.data = NULL;
    refused(HSI_USAGE, "null pointer", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.device = 0;
    refused(HSI_USAGE, "CUDA", "spp", NULL, &input, 1, &output, 1);
    other.device = -2;
    refused(HSI_USAGE, "not a device", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.has_nodata = 2;
    refused(HSI_USAGE, "'has_nodata'", "spp", NULL, &input, 1, &output, 1);
    other = source;
    other.name_count = -1;
    refused(HSI_USAGE, "-1 names", "spp", NULL, &input, 1, &output, 1);
    other.name_count = BANDS;
    refused(HSI_USAGE, "'names' is a null pointer", "spp", NULL, &input, 1, &output, 1);
    other.names = names;
    other.name_count = BANDS + 1;
    refused(HSI_USAGE, "9 names", "spp", NULL, &input, 1, &output, 1);
    input.array = &source;
    other = array_of(in + 100, BANDS);
    other.shape[0] = BANDS - 1;
    output.array = &other;
    refused(HSI_USAGE, "shares memory with src", "spp", NULL, &input, 1, &output, 1);
    other = target;
    other.shape[2] = SAMPLES - 1;
    refused(HSI_USAGE, "the result is", "spp", NULL, &input, 1, &output, 1);
    other = target;
    other.strides[2] = 0;
    refused(HSI_USAGE, "share memory", "spp", NULL, &input, 1, &output, 1);
    other = target;
    other.data = NULL;
    refused(HSI_USAGE, "no memory", "spp", NULL, &input, 1, &output, 1);
    other.size = 8;
    refused(HSI_USAGE, "'size'", "spp", NULL, &input, 1, &output, 1);
    output.array = &target;
    memset(in, 0, sizeof in);
    refused(HSI_FAILED, "no pixel is valid", "spp", NULL, &input, 1, &output, 1);
    CHECK(hsi_run("spp", NULL, &input, 1, &output, 1, NULL, NULL) == HSI_FAILED);
    CHECK(hsi_result_code(NULL) == HSI_FAILED && hsi_result_text(NULL, "dst") == NULL);
    hsi_result_free(NULL);
}

static int stop(void* user, double done) {
    (void)done;
    ++*(int*)user;
    return 1;
}

static void test_cancellation(void) {
    static float in[BANDS * PIXELS], out[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}};
    hsi_result* result = NULL;
    hsi_hooks hooks;
    int calls = 0;
    memset(&hooks, 0, sizeof hooks);
    hooks.size = sizeof hooks;
    hooks.user = &calls;
    hooks.progress = stop;
    fill(in);
    CHECK(hsi_run("spp", "{\"tile\": [8, 8]}", inputs, 1, outputs, 1, &hooks, &result) == HSI_CANCELLED);
    CHECK(calls > 0 && strstr(hsi_result_message(result), "interrupted") != NULL);
    hsi_result_free(result);
    hooks.progress = NULL;
    hooks.cancellation = hsi_cancellation_new();
    hsi_cancel(hooks.cancellation);
    CHECK(hsi_run("spp", NULL, inputs, 1, outputs, 1, &hooks, &result) == HSI_CANCELLED);
    hsi_result_free(result);
    hsi_cancellation_free(hooks.cancellation);
}

static void* one_of_several(void* argument) {
    static float in[BANDS * PIXELS];
    float* out = argument;
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}};
    int k;
    for (k = 0; k < 5; ++k)
        CHECK(hsi_run(k % 2 ? "spp" : "mnf", k % 2 ? "{}" : "{\"nc\": 8}", inputs, 1, outputs, 1, NULL,
                      NULL) != HSI_USAGE);
    CHECK(hsi_run("spp", NULL, inputs, 1, outputs, 1, NULL, NULL) == HSI_FAILED); /* all zero */
    fill(out); /* each its own values from here on */
    {
        float* own = malloc(sizeof in);
        hsi_array mine = array_of(own, BANDS);
        const hsi_input input[] = {{"src", &mine, NULL}};
        memcpy(own, out, sizeof in);
        CHECK(hsi_run("spp", "{\"ws\": 3}", input, 1, outputs, 1, NULL, NULL) == HSI_OK);
        free(own);
    }
    return NULL;
}

static void test_several_at_once(void) {
    enum { THREADS = 4 };
    static float out[THREADS][BANDS * PIXELS];
    pthread_t threads[THREADS];
    int k;
    for (k = 0; k < THREADS; ++k)
        CHECK(pthread_create(&threads[k], NULL, one_of_several, out[k]) == 0);
    for (k = 0; k < THREADS; ++k)
        pthread_join(threads[k], NULL);
    for (k = 1; k < THREADS; ++k)
        CHECK(memcmp(out[0], out[k], sizeof out[0]) == 0);
}

/* Under the one a forked child cannot start threads; the other's allocator is left locked in it. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
enum { FEATURES = 9 }; /* that eadp makes of one component */

static volatile sig_atomic_t g_calls_end = 0;

static int smooth(int k, float* in, float* out) {
    hsi_array source = array_of(in, BANDS), target = array_of(out, k % 2 ? BANDS : FEATURES);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}};
    return hsi_run(k % 2 ? "spp" : "eadp", k % 2 ? "{\"ws\": 3}" : "{\"nc\": 1}", inputs, 1, outputs, 1, NULL,
                   NULL);
}

static void* call_again_and_again(void* argument) {
    float *in = malloc((BANDS + FEATURES) * PIXELS * sizeof(float)), *out = in + BANDS * PIXELS;
    int k;
    (void)argument;
    fill(in);
    for (k = 0; !g_calls_end; ++k)
        CHECK(smooth(k, in, out) == HSI_OK);
    free(in);
    return NULL;
}

/* What threads had locked at the moment of a fork is free in the child. The limit is there to end a test that
 * hangs. */
static void test_forks_during_calls(void) {
    enum { THREADS = 3, FORKS = 300, SECONDS = 60 };
    static float in[BANDS * PIXELS], out[2][FEATURES * PIXELS];
    pthread_t threads[THREADS];
    int k, hung = 0;
    fill(in);
    for (k = 0; k < 2; ++k)
        CHECK(smooth(k, in, out[k]) == HSI_OK);
    for (k = 0; k < THREADS; ++k)
        CHECK(pthread_create(&threads[k], NULL, call_again_and_again, NULL) == 0);
    for (k = 0; k < FORKS && !hung; ++k) {
        const struct timespec pause = {0, 1000000};
        const time_t end = time(NULL) + SECONDS;
        int status = 0;
        pid_t ended = 0;
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child < 0) break;
        if (child == 0) {
            static float mine[FEATURES * PIXELS];
            if (smooth(k, in, mine) != HSI_OK) _exit(1);
            _exit(memcmp(mine, out[k % 2], sizeof mine) == 0 ? 0 : 2);
        }
        while ((ended = waitpid(child, &status, WNOHANG)) == 0 && time(NULL) < end)
            nanosleep(&pause, NULL);
        hung = ended == 0;
        if (hung) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
        }
        CHECK(!hung && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    g_calls_end = 1;
    for (k = 0; k < THREADS; ++k)
        pthread_join(threads[k], NULL);
}
#endif

struct ending {
    pthread_t caller;
    int of_others; /* which threads end: those that the library has started, or the caller's */
    int at_call;   /* counted from 0 */
    int calls, ended, returned, code;
    float* out;
    char message[200];
};

static int end_thread(void* user, double done) {
    struct ending* ending = user;
    const struct timespec pause = {0, 2000000}; /* in which the others begin */
    const int is_other = !pthread_equal(pthread_self(), ending->caller);
    (void)done;
    if (ending->of_others && !is_other) nanosleep(&pause, NULL);
    if (ending->calls++ < ending->at_call || is_other != ending->of_others) return 0;
    ending->ended = 1;
    pthread_exit(NULL);
}

static int end_in_allocate(void* user, const char* role, const char* info, hsi_array* array) {
    (void)role;
    (void)info;
    (void)array;
    (void)end_thread(user, 0);
    return 1;
}

static void* call_and_end(void* argument) {
    static float in[BANDS * PIXELS];
    struct ending* ending = argument;
    hsi_array source = array_of(in, BANDS), target = array_of(ending->out, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}};
    hsi_result* result = NULL;
    hsi_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.size = sizeof hooks;
    hooks.user = ending;
    if (ending->out != NULL)
        hooks.progress = end_thread;
    else
        hooks.allocate = end_in_allocate;
    fill(in);
    ending->caller = pthread_self();
    ending->code =
        hsi_run("spp", "{\"tile\": [8, 8], \"threads\": 4}", inputs, 1, outputs, 1, &hooks, &result);
    ending->returned = 1;
    strncat(ending->message, hsi_result_message(result), sizeof ending->message - 1);
    hsi_result_free(result);
    return NULL;
}

/* A hook that ends its thread ends that thread alone, as Python does at its end with threads in a call. A
 * call that loses a thread of its own fails. */
static void test_hooks_that_end_threads(void) {
    static float out[BANDS * PIXELS], before[BANDS * PIXELS], after[BANDS * PIXELS];
    int k, others_ended = 0;
    {
        struct ending never = {0};
        never.at_call = 1000000;
        never.out = before;
        never.caller = pthread_self();
        call_and_end(&never);
        CHECK(never.code == HSI_OK);
    }
    for (k = 0; k < 60; ++k) {
        struct ending ending = {0}, never = {0};
        pthread_t thread;
        ending.at_call = k / 3 % 10;
        ending.of_others = k % 3 == 1;
        ending.out = k % 3 == 2 ? NULL : out;
        if (ending.out == NULL) ending.at_call = 0;
        CHECK(pthread_create(&thread, NULL, call_and_end, &ending) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        if (ending.of_others) {
            CHECK(ending.returned);
            CHECK(ending.code == (ending.ended ? HSI_FAILED : HSI_OK));
            CHECK(!ending.ended || strstr(ending.message, "a hook ended a thread of the library") != NULL);
            others_ended += ending.ended;
        } else {
            CHECK(ending.returned == !ending.ended);
        }
        if (k % 3 == 2 || (k % 3 == 0 && ending.at_call == 0)) CHECK(ending.ended);
        never.at_call = 1000000;
        never.out = after;
        call_and_end(&never);
        CHECK(never.returned && never.code == HSI_OK && memcmp(before, after, sizeof after) == 0);
    }
    CHECK(others_ended > 0);
}

/* Ten thousand calls, good ones and bad ones, take no more memory than a thousand do. */
static void test_growth(void) {
    static float in[BANDS * PIXELS], out[BANDS * PIXELS];
    hsi_array source = array_of(in, BANDS), target = array_of(out, BANDS);
    const hsi_input inputs[] = {{"src", &source, NULL}};
    const hsi_output outputs[] = {{"dst", &target}};
    struct rusage before, after;
    int k;
    source.shape[1] = source.shape[2] = target.shape[1] = target.shape[2] = 6;
    fill(in);
    for (k = 0; k < 10000; ++k) {
        hsi_result* result = NULL;
        const int code = hsi_run("spp", k % 4 == 3 ? "{\"ws\": 9}" : "{\"ws\": 3, \"threads\": 1}", inputs, 1,
                                 outputs, 1, NULL, &result);
        CHECK(code == (k % 4 == 3 ? HSI_USAGE : HSI_OK));
        hsi_result_free(result);
        if (k == 1000) getrusage(RUSAGE_SELF, &before);
    }
    getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__) &&                                                                        \
    !defined(__SANITIZE_THREAD__) /* which keep what was freed, and look for leaks themselves */
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 * 1024); /* KiB */
#endif
}

int main(void) {
    CHECK(strlen(hsi_version()) > 0);
    CHECK(strstr(hsi_algorithms(), "\"name\":\"spp\"") != NULL);
    test_run_and_strides();
    test_hooks_and_models();
    test_bad_hooks();
    test_plan();
    test_libraries_and_labels();
    test_refusals();
    test_strides();
    test_cancellation();
    test_several_at_once();
    test_hooks_that_end_threads();
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    test_forks_during_calls();
#endif
    test_growth();
    return g_failed;
}
