/* A shared library whose functions are somebody else's: `told` says which. It stands for libcuda.so.1, which is asked
   for functions by their name, and for libraries whose functions are looked up in the file (`FORWARDED`). */

#include <string.h>

static struct { const char *name; void *function; } known[512];
static int count;

void told(const char *name, void *function)
{
    known[count].name = strdup(name);
    known[count++].function = function;
}

static void *find(const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(known[i].name, name))
            return known[i].function;
    return 0;
}

#ifdef FORWARDED /* arguments are words; a structure that is passed by value lies in those behind the sixth */
typedef long w;
typedef w (*any)(w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w);
#define FORWARD(name) \
    w name(w a, w b, w c, w d, w e, w f, w g, w h, w i, w j, w k, w l, w m, w n, w o, w p, w q, w r, w s, w t, w u, w v, w x, w y) \
    { return ((any)find(#name))(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, x, y); }
#include FORWARDED
#else
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, void *status)
{
    *function = find(name);
    return *function ? 0 : 500; /* CUDA_ERROR_NOT_FOUND */
}

int cuDriverGetVersion(int *out) /* which some look up in the file */
{
    return ((int (*)(int *))find("cuDriverGetVersion"))(out);
}
#endif
