{
  "variables": {
    "strict_warnings": ["-Wall", "-Wextra", "-Werror"]
  },
  "targets": [
    {
      "target_name": "ringfence",
      "sources": [
        "<!@(node -p \"require('fs').readdirSync('native/addon').filter((f) => f.endsWith('.cc')).sort().map((f) => 'native/addon/' + f).join(' ')\")"
      ],
      "include_dirs": ["native/shared", "<!(node -p \"require('node-addon-api').include_dir\")"],
      # SWALLOW: in a worker that is being terminated every call fails and nothing can be thrown; the default is to abort.
      "defines": [
        "NAPI_VERSION=8",
        "NAPI_DISABLE_CPP_EXCEPTIONS",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "cflags_cc": ["-std=c++17", "-fvisibility=hidden", "<@(strict_warnings)", "-Wno-cast-function-type"]
    },
    {
      "target_name": "ringfence-launcher",
      "type": "executable",
      "sources": [
        "<!@(node -p \"require('fs').readdirSync('native/launcher').filter((f) => f.endsWith('.cc')).sort().map((f) => 'native/launcher/' + f).join(' ')\")"
      ],
      "include_dirs": ["native/shared", "native/seccomp"],
      "cflags_cc": ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-O2", "<@(strict_warnings)"],
      "ldflags": ["-static"],
      "ldflags!": ["-rdynamic"]
    }
  ]
}
