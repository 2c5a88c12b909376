/* SPDX-License-Identifier: MIT */
/* libhsi: the algorithms of gdal-hsi on arrays in memory. C99, no GDAL.
 *
 * A call names an algorithm ("spp", "pca", "detect" ...: a tool of the suite without gdal_hsi_), gives its
 * options as a JSON object, arrays and texts by their roles, and gets arrays and texts by theirs. Options,
 * roles and what they mean are those of the tool: hsi_algorithms() lists them. An array takes the place of a
 * file, and results have the bits of the tool's:
 *
 *   hsi_array in = HSI_ARRAY, out = HSI_ARRAY;
 *   ... data, type, shape and strides of both ...
 *   const hsi_input inputs[] = {{"src", &in, NULL}};
 *   const hsi_output outputs[] = {{"dst", &out}};
 *   hsi_result *result = NULL;
 *   if (hsi_run("spp", "{\"ws\": 7}", inputs, 1, outputs, 1, NULL, &result) != HSI_OK)
 *       fprintf(stderr, "%s\n%s\n", hsi_result_message(result), hsi_result_advice(result));
 *   hsi_result_free(result);
 *
 * All functions are thread-safe, and several calls may run at once. None prints, ends the process, sets
 * signal handlers or changes the environment. What is not said to be freed by the caller is the library's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HSI_API __attribute__((visibility("default")))
#else
#define HSI_API
#endif

/* The number of this interface: it grows when a function or a member is added; those that are there stay. */
#define HSI_INTERFACE 1

/* How a call has ended; a tool's exit codes. */
enum {
    HSI_OK = 0,
    HSI_FAILED = 1,   /* the work could not be done */
    HSI_USAGE = 2,    /* the arguments were wrong; nothing was computed */
    HSI_CANCELLED = 3 /* hsi_cancel(), or progress() of the hooks has asked for the end */
};

/* Types of values, with the numbers that GDAL gives them. */
enum {
    HSI_UINT8 = 1,
    HSI_UINT16 = 2,
    HSI_INT16 = 3,
    HSI_UINT32 = 4,
    HSI_INT32 = 5,
    HSI_FLOAT32 = 6,
    HSI_FLOAT64 = 7,
    HSI_UINT64 = 12,
    HSI_INT64 = 13,
    HSI_INT8 = 14
};

/* An array of somebody else's. Element (b, l, s) lies strides[0] * b + strides[1] * l + strides[2] * s bytes
 * behind `data`: any order of axes, strides may be negative, or 0 in an input. Inputs are never written.
 * Strides along an axis of one element say nothing.
 *
 * All arrays on a device are on one, and results then are there, too: the call waits for the inputs' streams,
 * computes on that device and has ended when it returns. Texts, labels and masks may be in host memory beside
 * them.
 *
 * A scene has shape {bands, lines, samples}; labels and masks have one band; a spectral library has shape
 * {bands, 1, spectra}. */
typedef struct hsi_array {
    size_t size; /* sizeof(hsi_array) */
    void* data;
    int64_t shape[3];
    int64_t strides[3]; /* bytes */
    int32_t type;       /* HSI_FLOAT32 ... */
    int32_t device;     /* -1: host memory; n: memory of CUDA device n */
    void* stream;       /* of CUDA, in which a device array is ready; NULL: the default one */

    /* Of inputs: */
    /* NULL, or bytes of lines x samples in host memory: pixels where it is 0 have no value */
    const void* mask;
    int64_t mask_strides[2];
    int32_t has_nodata; /* 0, or 1: values equal to `nodata` are none. NaN never is one. */
    double nodata;      /* of outputs, when the call has ended: what stands for no value, if has_nodata */
    const double* wavelengths; /* NULL, or one a band in nm, NaN where unknown */
    const double* widths;      /* likewise, full widths at half maximum */
    /* NULL, or texts in UTF-8: of a scene one a band; of labels the classes' names, the first one of class 0,
     * NULL or
     * "" where there is none; of a library one a spectrum. */
    const char* const* names;
    int64_t name_count; /* 0 without names; of a scene and of a library no more than that */
    /* NULL, or one a band: value * scale + offset is what was measured, in `unit` (NULL: unknown). */
    const double* scales;
    const double* offsets;
    const char* unit;
} hsi_array;

/* The initial value of an hsi_array: host memory, nothing known. */
#define HSI_ARRAY                                                                                            \
    {                                                                                                        \
        sizeof(hsi_array), NULL, {0, 0, 0}, {0, 0, 0}, HSI_FLOAT32, -1, NULL, NULL, {0, 0}, 0, 0.0, NULL,    \
            NULL, NULL, 0, NULL, NULL, NULL                                                                  \
    }

/* What is read: an array, or a text (a model as JSON; a library as JSON as results have it). */
typedef struct hsi_input {
    const char* role; /* the tool's argument: "src", "mask", "target", "apply" ... */
    const hsi_array* array;
    const char* text; /* "none" where the tool takes that word for a file's name */
} hsi_input;

/* What is wanted. Rasters go into `array` when its data is not NULL: type, shape and strides must be those of
 * the result (hsi_plan() tells them). Else the hooks' allocate() is asked for memory, and `array`, where it
 * is not NULL, tells which. Models, tables, libraries and points are texts, which hsi_result_text() has. */
typedef struct hsi_output {
    const char* role; /* "dst", "alpha", "model", "csv" ... */
    hsi_array* array;
} hsi_output;

/* May be asked for the end of a call from any thread, and from a signal handler. */
typedef struct hsi_cancellation hsi_cancellation;
HSI_API hsi_cancellation* hsi_cancellation_new(void); /* NULL without memory */
HSI_API void hsi_cancel(hsi_cancellation* cancellation);
HSI_API void hsi_cancellation_free(hsi_cancellation* cancellation);

/* A hook may end its thread by pthread_exit(). On the calling thread the call ends with it, and *result stays
 * NULL; else the call fails. */
typedef struct hsi_hooks {
    size_t size; /* sizeof(hsi_hooks) */
    void* user;  /* for the functions below, each of which may be NULL */
    /* The share that is done, 0 to 1. From any thread, one at a time. Returns 0 to go on, else the call ends.
     */
    int (*progress)(void* user, double done);
    /* Memory for an output, on the calling thread: type, shape and device of the array are set, data and
     * strides are to be. info: what hsi_result_json() says of the output. Returns 0, or anything else when
     * there is none.
     */
    int (*allocate)(void* user, const char* role, const char* info, hsi_array* array);
    /* What the user should know (warning = 1) or may want to (0). From any thread. */
    void (*message)(void* user, int warning, const char* text);
    hsi_cancellation* cancellation; /* NULL: none; it must outlive the call */
} hsi_hooks;

/* How a call has ended and what it has to tell. */
typedef struct hsi_result hsi_result;

/* The version of the library, "0.2.0". */
HSI_API const char* hsi_version(void);

/* The algorithms as JSON: a list of objects with name, title, description, arguments (as --json-usage of the
 * tools has them, less those that are about files alone), exclusive and examples. */
HSI_API const char* hsi_algorithms(void);

/* Runs an algorithm. options: NULL, or a JSON object by the names of arguments, such as {"ws": 7, "threads":
 * 2}: numbers, texts, true for a flag, lists where an argument takes several values or may be repeated. An
 * output must not overlap an input or another output. hooks may be NULL. Returns one of the codes above;
 * *result (result may be NULL) is set in any case but one, no memory at all, and is the caller's to free.
 * When the code is not HSI_OK, outputs hold anything. */
HSI_API int hsi_run(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
                    const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks,
                    hsi_result** result);

/* Checks the same without computing or writing anything. hsi_result_json() then tells shapes and types of the
 * outputs, and in "plan" of its report what each pass takes of memory. Bands that turn out to be of no use
 * may make results smaller. */
HSI_API int hsi_plan(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
                     const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks,
                     hsi_result** result);

HSI_API int hsi_result_code(const hsi_result* result);
HSI_API const char*
hsi_result_message(const hsi_result* result); /* what is wrong, one line; "" when nothing is */
HSI_API const char* hsi_result_advice(const hsi_result* result); /* what to do about it; may be "" */
/* The text of an output; NULL where there is none. */
HSI_API const char* hsi_result_text(const hsi_result* result, const char* role);
/* An object with "outputs" (by role: shape, type, nodata, bands, classes), "report" (what the tool's -report
 * says of its own), "printed", "warnings" and "notes" (lists of texts). */
HSI_API const char* hsi_result_json(const hsi_result* result);
HSI_API void hsi_result_free(hsi_result* result);

#ifdef __cplusplus
}
#endif
