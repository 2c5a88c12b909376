/* SPDX-License-Identifier: MIT */
/* libhsi: the algorithms of gdal-hsi on arrays in memory. C99, no GDAL.
 *
 * A call names an algorithm ("spp", "pca", "detect" ...: the name of a tool without gdal_hsi_). It passes
 * options as a JSON object, and input arrays and texts by role. It returns arrays and texts by role. Options
 * and roles mean the same as in the tool; hsi_algorithms() lists them. Arrays replace files, and results have
 * the same bits as the tool's:
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
 * All functions are thread-safe, and several calls may run at once. They do not print, end the process, set
 * signal handlers or change the environment. The comments below name the memory that the caller must free;
 * all other memory belongs to the library.
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

/* The version of this interface. It increases when functions or members are added. Existing functions and
 * members remain. */
#define HSI_INTERFACE 1

/* The outcome of a call. The values are the exit codes of the tools. */
enum {
    HSI_OK = 0,
    HSI_FAILED = 1,   /* the work could not be done */
    HSI_USAGE = 2,    /* the arguments were wrong; nothing was computed */
    HSI_CANCELLED = 3 /* hsi_cancel() or the hook progress() has cancelled the call */
};

/* Types of values, with GDAL's numbers. */
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

/* An array that the caller owns. Element (b, l, s) is at byte strides[0] * b + strides[1] * l + strides[2] *
 * s of `data`. Axes may be in any order, and strides may be negative, or 0 in an input. Inputs are never
 * written. Strides along an axis with one element are ignored.
 *
 * If any input array is on a device, the call computes on that device, and new outputs are also there. All
 * arrays on devices must be on the same device. The call waits for the arrays' streams before it computes,
 * and all results are complete when it returns. Texts, labels and masks may be in host memory.
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
    void* stream;       /* the CUDA stream in which a device array is ready; NULL: default stream */

    /* The members below describe inputs. */
    /* NULL, or a mask of lines x samples bytes in host memory: pixels whose byte is 0 are missing */
    const void* mask;
    int64_t mask_strides[2];
    int32_t has_nodata;        /* 0, or 1: values equal to `nodata` are missing. NaN is always missing. */
    double nodata;             /* in an output after the call: the value of missing pixels, if has_nodata */
    const double* wavelengths; /* NULL, or one per band in nm, NaN if unknown */
    const double* widths;      /* NULL, or one full width at half maximum per band in nm, NaN if unknown */
    /* NULL, or texts in UTF-8: for a scene one per band; for labels the classes' names from class 0 on, NULL
     * or "" if a class has no name; for a library one per spectrum. */
    const char* const* names;
    int64_t name_count; /* the length of `names`: at most the bands of a scene, or the spectra of a library */
    /* NULL, or one per band: value * scale + offset is the measured value, in `unit` (NULL: unknown). */
    const double* scales;
    const double* offsets;
    const char* unit;
} hsi_array;

/* The initial value of an hsi_array: in host memory, without data and metadata. */
#define HSI_ARRAY                                                                                            \
    {                                                                                                        \
        sizeof(hsi_array), NULL, {0, 0, 0}, {0, 0, 0}, HSI_FLOAT32, -1, NULL, NULL, {0, 0}, 0, 0.0, NULL,    \
            NULL, NULL, 0, NULL, NULL, NULL                                                                  \
    }

/* An input: an array, or a text (a model as JSON; a library as JSON, in the form of results). */
typedef struct hsi_input {
    const char* role; /* the tool's argument: "src", "mask", "target", "apply" ... */
    const hsi_array* array;
    const char* text; /* may be "none" if the tool accepts that word instead of a file name */
} hsi_input;

/* A requested output. A raster is written to the data of `array`. Its type and shape must be those of the
 * result, which hsi_plan() returns. If `array` or its data is NULL, the hook allocate() provides the memory;
 * the call then describes this memory in `array`, unless `array` is NULL. Models, tables, libraries and
 * points are texts, which hsi_result_text() returns. */
typedef struct hsi_output {
    const char* role; /* "dst", "alpha", "model", "csv" ... */
    hsi_array* array;
} hsi_output;

/* Cancels a call. hsi_cancel() may be called from any thread, and from a signal handler. */
typedef struct hsi_cancellation hsi_cancellation;
HSI_API hsi_cancellation* hsi_cancellation_new(void); /* returns NULL if there is no memory */
HSI_API void hsi_cancel(hsi_cancellation* cancellation);
HSI_API void hsi_cancellation_free(hsi_cancellation* cancellation);

/* A hook may end its thread with pthread_exit(). If it ends the calling thread, the call does not return, and
 * *result remains NULL. If it ends another thread, the call fails. */
typedef struct hsi_hooks {
    size_t size; /* sizeof(hsi_hooks) */
    void* user;  /* for the functions below, each of which may be NULL */
    /* Receives the completed fraction, 0 to 1. Called from any thread, one at a time. Returns 0 to continue;
     * other values end the call. */
    int (*progress)(void* user, double done);
    /* Allocates an output, on the calling thread. Type, shape and device of the array are set; the hook sets
     * data and strides. info: the description of the output in hsi_result_json(). Returns 0, or another value
     * if it cannot allocate the memory. */
    int (*allocate)(void* user, const char* role, const char* info, hsi_array* array);
    /* Receives a warning (warning = 1) or a note (0) for the user. Called from any thread. */
    void (*message)(void* user, int warning, const char* text);
    hsi_cancellation* cancellation; /* may be NULL; must outlive the call */
} hsi_hooks;

/* The outcome of a call, with its messages and texts. */
typedef struct hsi_result hsi_result;

/* Returns the version of the library, "0.2.0". */
HSI_API const char* hsi_version(void);

/* Returns the algorithms as JSON: a list of objects with name, title, description, arguments (as in the
 * tools' --json-usage, without those that apply only to files), exclusive and examples. */
HSI_API const char* hsi_algorithms(void);

/* Runs an algorithm. options: NULL, or a JSON object with the names of arguments, such as {"ws": 7,
 * "threads": 2}: numbers, texts, true for a flag, lists if an argument takes several values or may be
 * repeated. An output must not overlap an input or another output. hooks may be NULL. Returns HSI_OK,
 * HSI_FAILED, HSI_USAGE or HSI_CANCELLED. Sets *result if result is not NULL; the caller must free *result,
 * which is NULL only if there was no memory for it. Outputs are undefined if the code is not HSI_OK. */
HSI_API int hsi_run(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
                    const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks,
                    hsi_result** result);

/* Makes the checks of hsi_run() without computing or writing anything. hsi_result_json() then contains shapes
 * and types of the outputs and, in "plan" of its report, the memory of each pass. The results of hsi_run()
 * may be smaller if some bands turn out to be unusable. */
HSI_API int hsi_plan(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
                     const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks,
                     hsi_result** result);

HSI_API int hsi_result_code(const hsi_result* result);
HSI_API const char*
hsi_result_message(const hsi_result* result); /* returns the error as one line of text; "" on success */
HSI_API const char* hsi_result_advice(const hsi_result* result); /* returns what to do; may be "" */
/* Returns the text of an output; NULL if the call has no text for this role. */
HSI_API const char* hsi_result_text(const hsi_result* result, const char* role);
/* Returns an object with "outputs" (by role: shape, type, nodata, bands, classes), "report" (the tool's own
 * entries of -report), "printed", "warnings" and "notes" (lists of texts). */
HSI_API const char* hsi_result_json(const hsi_result* result);
HSI_API void hsi_result_free(hsi_result* result);

#ifdef __cplusplus
}
#endif
