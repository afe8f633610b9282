#include "actors/serve/server.hpp"

#include "actors/control/system.hpp"
#include "actors/serve/access.hpp"
#include "actors/serve/completion.hpp"
#include "actors/serve/http_server.hpp"
#include "actors/serve/metrics.hpp"
#include "actors/serve/overview.hpp"
#include "actors/serve/page.hpp"
#include "actors/serve/routes.hpp"
#include "config/cluster_file.hpp"
#include "config/log.hpp"

#include <fmt/format.h>

#include <ctime>
#include <functional>
#include <thread>

namespace troupe::actors::serve {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds pulse_period{100};
/// Of events for the page: a few a second look alive and cost nothing that is felt.
constexpr milliseconds view_period{500};

/// Asks the director how it is, again and again.
struct pulse_state {
  static inline const char* name = "pulse";

  clock::time_point asked = clock::now(); ///< Of the last question.
  bool waiting = false;
  clock::time_point shown{}; ///< To those who watch.
};

std::string overview_of(const service& shared) {
  const auto known = shared.pulse.status();
  return overview_json(known ? *known : cluster_status{}, shared.pulse.read(), shared.model.name);
}

void show(pulse_state& my, const service& shared) {
  if (clock::now() - my.shown < view_period || shared.watched->empty())
    return;
  my.shown = clock::now();
  shared.watched->tell(overview_of(shared));
}

caf::behavior watch_pulse(caf::stateful_actor<pulse_state>* self, service_handle shared) {
  self->send(self, tick{});
  return {
    [self, shared](tick) {
      auto& my = self->state;
      self->delayed_send(self, pulse_period, tick{});
      show(my, *shared);
      if (my.waiting)
        return shared->pulse.miss(my.asked);
      my.waiting = true;
      my.asked = clock::now();
      self->request(shared->gateway, caf::infinite, status_query{})
        .then(
          [self, shared](cluster_status& known) {
            self->state.waiting = false;
            shared->pulse.hear(std::move(known));
          },
          // The director has ended; that is what the misses say.
          [](const caf::error&) {});
    },
  };
}

/// The last word of the director may be as old as the pulse's period: before somebody is told "not
/// ready", or gets numbers, it is asked again. Then goes on, with or without an answer.
void look_again(caf::event_based_actor* self,
                const service_handle& shared,
                const work_token& token,
                std::function<void()> go_on) {
  self->request(shared->gateway, pulse_period, status_query{})
    .then(
      [shared, token, go_on](cluster_status& known) {
        shared->pulse.hear(std::move(known));
        go_on();
      },
      [token, go_on](const caf::error&) { go_on(); });
}

std::string url_of(const serve_settings& serve, std::uint16_t port) {
  const bool is_ipv6 = serve.bind.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}",
                     serve.has_certificate() ? "https" : "http",
                     is_ipv6 ? "[" : "",
                     serve.bind,
                     is_ipv6 ? "]" : "",
                     port);
}

// What /v1/models calls it: the folder's name, also where the path ends in '/'.
std::string name_of_model(const cluster_settings& settings) {
  if (!settings.serve.model_name.empty())
    return settings.serve.model_name;
  const auto& path = settings.model.path;
  const auto name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return name.empty() ? std::string("model") : name.string();
}

class front_door final : public server {
public:
  front_door(caf::actor_system& system, const server_setup& setup, access who)
    : system_(system), shared_(std::make_shared<service>(*setup.settings)), access_(std::move(who)),
      plan_svg_(setup.plan_svg) {
    shared_->gateway = setup.gateway;
    shared_->words = setup.words;
    shared_->model = {name_of_model(*setup.settings), std::time(nullptr), setup.context};
    if (auto chat = compute::chat::chat_format::open(setup.words_folder)) {
      shared_->chat = std::move(*chat);
    } else {
      shared_->no_chat = chat.error().what;
      log::info("http answers no chat: {}", shared_->no_chat);
    }
    const auto& serve = setup.settings->serve;
    shared_->rules.refuse_unknown = serve.unknown_parameters == "refuse";
    shared_->rules.nesting = serve.nesting;
    shared_->rules.max_choices = serve.max_choices;
    shared_->rules.vocabulary = setup.words->vocabulary_size();
  }

  ~front_door() override { stop(milliseconds{0}); }

  result<void> open();

  const std::string& url() const override { return url_; }

  void stop(milliseconds grace) override;

private:
  void answer(const exchange_handle& exchange);
  void route(const exchange_handle& exchange);
  void serve(const exchange_handle& exchange);
  void route_model(const exchange_handle& exchange, std::string_view name);
  void watch(const exchange_handle& exchange) const;
  http_response health(bool ready_wanted) const;
  http_response metrics() const;
  http_response plan() const;

  caf::actor_system& system_;
  service_handle shared_;
  access access_;
  std::string plan_svg_;
  caf::actor pulse_;
  std::unique_ptr<http_server> http_;
  std::string url_;
};

result<void> front_door::open() {
  const auto& serve = shared_->settings.serve;
  http_options options;
  options.bind = serve.bind;
  options.port = static_cast<std::uint16_t>(serve.port);
  options.certificate = serve.certificate;
  options.key = serve.key;
  options.limits.body_bytes = serve.body_bytes;
  options.limits.header_bytes = serve.header_bytes;
  options.limits.connections = serve.connections;
  options.limits.stream_buffer_bytes = serve.stream_buffer_bytes;
  options.limits.idle = milliseconds(serve.idle_ms);
  options.limits.read = milliseconds(serve.read_ms);
  options.limits.keep_alive = milliseconds(serve.keep_alive_ms);
  options.on_request = [this](const exchange_handle& exchange) { answer(exchange); };
  options.on_answered = [this](const http_request& asked, unsigned status) {
    shared_->answers.add(asked.path, status);
  };
  options.describe_error = [](unsigned status, const std::string& what) {
    return error_json({status, what, {}, {}});
  };
  options.describe_silence = [this]() -> std::string {
    const auto state = shared_->pulse.read();
    if (state.ready)
      return "waiting";
    auto text = fmt::format("paused: {}", state.reason);
    for (auto& c : text)
      if (c == '\n' || c == '\r')
        c = ' ';
    return text;
  };
  auto started = http_server::start(std::move(options));
  if (!started) {
    const auto* key = started.error().code == errc::io_error ? "serve.port" : "serve.certificate";
    return error{errc::invalid_config,
                 shared_->settings.point_at(key, "HTTP: " + started.error().what)};
  }
  http_ = std::move(*started);
  url_ = url_of(serve, http_->port());
  log::info("http serves {} at {}", shared_->model.name, url_);
  pulse_ = system_.spawn(watch_pulse, shared_);
  return {};
}

void front_door::stop(milliseconds grace) {
  if (!http_)
    return;
  shared_->watched->close();
  http_->stop(grace); // Those who answer hear that their clients are gone.
  caf::anon_send_exit(pulse_, caf::exit_reason::user_shutdown);
  pulse_ = nullptr;
  const auto give_up = clock::now() + milliseconds{2000};
  while (shared_->at_work.load(std::memory_order_relaxed) > 0 && clock::now() < give_up)
    std::this_thread::sleep_for(milliseconds{1});
  if (shared_->at_work > 0)
    log::warn("http leaves {} requests behind", shared_->at_work.load());
  http_.reset();
}

void front_door::answer(const exchange_handle& exchange) {
  const auto& asked = exchange->request();
  log::debug("http {} {} {} from {}", asked.id, asked.method, asked.path, asked.peer);
  exchange->add_headers(access_.headers_for(asked));
  if (auto foreign = access_.find_foreign_page(asked); !foreign.empty())
    return exchange->respond(error_response({403, std::move(foreign), {}, "forbidden"}));
  if (asked.method == "OPTIONS") {
    http_response made{204, {}, {}, {{"Allow", "GET, HEAD, POST, OPTIONS"}}};
    made.headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    made.headers.emplace_back("Access-Control-Allow-Headers", "*, Authorization");
    made.headers.emplace_back("Access-Control-Max-Age", "600");
    return exchange->respond(std::move(made));
  }
  // Neither tells anything: the page asks with the key that its reader gives it.
  const bool is_open = asked.path.starts_with("/health") || asked.path == "/";
  if (!is_open && !access_.has_key(asked))
    return exchange->respond(
      error_response({401,
                      "this server asks for an API key: Authorization: Bearer KEY, with a KEY of "
                      "serve.keys_file",
                      {},
                      "invalid_api_key"}));
  route(exchange);
}

void front_door::route(const exchange_handle& exchange) {
  const auto& asked = exchange->request();
  const std::string_view path = asked.path;
  const auto* there = find_route(path);
  if (there == nullptr)
    return exchange->respond(
      error_response({404,
                      fmt::format("there is nothing at {}; docs/api.md lists what is", path),
                      {},
                      "not_found"}));
  const bool reads = asked.method == "GET" || asked.method == "HEAD";
  if (there->takes_post ? asked.method != "POST" : !reads) {
    auto refused = error_response(
      {405,
       fmt::format("{} takes {}, not {}", path, there->takes_post ? "POST" : "GET", asked.method),
       {},
       "method_not_allowed"});
    refused.headers.emplace_back("Allow", there->takes_post ? "POST" : "GET, HEAD");
    return exchange->respond(std::move(refused));
  }
  const bool completes = path == "/v1/completions" || path == "/v1/chat/completions";
  const bool wants_news =
    path == "/metrics" || path == "/events"
    || ((completes || path == "/health/ready") && !shared_->pulse.read().ready);
  if (wants_news) {
    system_.spawn(look_again, shared_, count_work(shared_), [this, exchange] { serve(exchange); });
    return;
  }
  serve(exchange);
}

/// A request for something that there is, with a method that it takes.
void front_door::serve(const exchange_handle& exchange) {
  const std::string_view path = exchange->request().path;
  if (path == "/v1/completions" || path == "/v1/chat/completions")
    return spawn_completion(system_, shared_, exchange, path == "/v1/chat/completions");
  if (path == "/tokenize" || path == "/detokenize")
    return spawn_words(system_, shared_, exchange);
  if (path.starts_with("/health"))
    return exchange->respond(health(path == "/health/ready"));
  if (path == "/")
    return exchange->respond(page_answer());
  if (path == "/events")
    return watch(exchange);
  if (path == "/metrics")
    return exchange->respond(metrics());
  if (path == "/plan.svg")
    return exchange->respond(plan());
  if (path.starts_with("/v1/models/"))
    return route_model(exchange, path.substr(std::string_view("/v1/models/").size()));
  exchange->respond({200, "application/json", model_list_json(shared_->model), {}});
}

void front_door::route_model(const exchange_handle& exchange, std::string_view name) {
  if (name == shared_->model.name)
    return exchange->respond({200, "application/json", model_json(shared_->model), {}});
  exchange->respond(error_response(
    {404,
     fmt::format("there is no model {}; this server has {}", name, shared_->model.name),
     "model",
     "model_not_found"}));
}

void front_door::watch(const exchange_handle& exchange) const {
  if (exchange->request().method == "HEAD")
    return exchange->begin_events(); // ends at once: nobody watches
  if (!shared_->watched->add(exchange))
    return exchange->respond(
      error_response({503,
                      fmt::format("{} pages watch already, or the server ends", viewers::most),
                      {},
                      "overloaded"},
                     retry_after_s(*shared_)));
  exchange->send_event(overview_of(*shared_));
}

http_response front_door::metrics() const {
  const auto known = shared_->pulse.status();
  const server_facts facts{shared_->model.name,
                           shared_->pulse.read().ready,
                           http_->connections(),
                           shared_->answers.read()};
  return {200, metrics_type, metrics_text(known ? *known : cluster_status{}, facts), {}};
}

http_response front_door::plan() const {
  if (plan_svg_.empty())
    return error_response({404, "this head has drawn no plan", {}, "not_found"});
  return {200, "image/svg+xml", plan_svg_, {}};
}

http_response front_door::health(bool ready_wanted) const {
  if (!ready_wanted)
    return {200, "application/json", health_json({true, {}, {}}), {}};
  const auto state = shared_->pulse.read();
  http_response made{state.ready ? 200u : 503u,
                     "application/json",
                     health_json({state.ready, state.reason, state.since.count()}),
                     {}};
  if (!state.ready)
    made.headers.emplace_back("Retry-After", "1");
  return made;
}

} // namespace

result<std::unique_ptr<server>> server::start(caf::actor_system& system, server_setup setup) {
  if (auto files = check_serve_files(*setup.settings); !files)
    return files.error();
  auto who = access::load(*setup.settings);
  if (!who)
    return who.error();
  auto made = std::make_unique<front_door>(system, setup, std::move(*who));
  if (auto open = made->open(); !open)
    return open.error();
  return std::unique_ptr<server>(std::move(made));
}

} // namespace troupe::actors::serve
