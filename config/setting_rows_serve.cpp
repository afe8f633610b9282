#include "config/setting_rows.hpp"

namespace troupe {

namespace {

constexpr double day_ms = 86'400'000;

} // namespace

std::vector<setting> rows(serve_settings& s) {
  return {
    {"enabled",
     &s.enabled,
     "Whether `troupe up` and `troupe node` serve HTTP from the head. Off, because a port that "
     "nobody asked for is a risk; `troupe serve` turns it on."},
    {"bind",
     &s.bind,
     "Address to listen on. Loopback, because whoever reaches it can use the model: beyond it, "
     "`keys_file` is needed."},
    {"port", &s.port, "Port of HTTP. 0 takes a free one, which is printed.", {0, 65'535}},
    {"model_name",
     &s.model_name,
     "What the model is called in /v1/models and in requests. The name of its folder when absent."},
    {"keys_file",
     path_slot{&s.keys_file, {}},
     "A file of API keys, one a line, each at least 16 characters, not readable for others; lines "
     "that begin with # are comments. Requests must then carry one. None when absent, which is "
     "accepted on loopback only."},
    {"certificate",
     path_slot{&s.certificate, {}},
     "Certificate chain (PEM) for HTTPS; goes with `key`. Plain HTTP when absent: on loopback it "
     "protects nothing, and elsewhere many have a proxy that does it."},
    {"key", path_slot{&s.key, {}}, "The private key of `certificate` (PEM)."},
    {"origins",
     &s.origins,
     "Web origins whose pages may call the API from a browser, such as \"https://chat.example\"; "
     "\"*\" is all. None, because any page that somebody visits could else use the model."},
    {"unknown_parameters",
     choice{&s.unknown_parameters, {"refuse", "ignore"}},
     "What to do with a parameter of a request that is not known. Refused, because a misspelt one "
     "would be silently without effect."},
    {"max_choices",
     &s.max_choices,
     "Answers that one request may ask for: its prompts times `n`. 16 is twice what a default "
     "cluster computes at a time.",
     {1, 1024}},
    {"body_bytes",
     &s.body_bytes,
     "Bytes of a request's body at most. 8 MiB is more text than any context holds.",
     {256, 1 << 30}},
    {"header_bytes",
     &s.header_bytes,
     "Bytes of a request's header at most; what proxies send fits into 16 KiB.",
     {256, 1 << 20}},
    {"nesting",
     &s.nesting,
     "Levels of brackets in a request's JSON at most. Schemas of tools have about ten.",
     {4, 1024}},
    {"connections",
     &s.connections,
     "Connections at the same time; further ones are told 503. Each takes a descriptor, and most "
     "systems give a process 1024 or more.",
     {1, 65'536}},
    {"idle_ms",
     &s.idle_ms,
     "A connection without a request is closed after this time. Longer than the 60 s of most "
     "proxies, so that theirs end first.",
     {1, day_ms}},
    {"read_ms",
     &s.read_ms,
     "How long a request may take from its first byte to its last; ends clients that send a byte "
     "a minute to hold connections.",
     {1, day_ms}},
    {"keep_alive_ms",
     &s.keep_alive_ms,
     "A stream that has nothing to say (its request waits, or the cluster recovers) sends a "
     "comment this often, so that nothing on the way takes it for dead.",
     {10, day_ms}},
    {"stream_buffer_bytes",
     &s.stream_buffer_bytes,
     "What waits for a client that reads slowly. When it is full, the client is cut off and its "
     "work stops; 256 KiB are a thousand tokens.",
     {256, 1 << 30}},
  };
}

} // namespace troupe
