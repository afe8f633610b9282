#include "actors/serve/completion.hpp"

#include "actors/control/system.hpp"
#include "actors/sampling.hpp"
#include "actors/serve/api_request.hpp"
#include "compute/chat/value_text.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <map>
#include <random>

namespace troupe::actors::serve {

namespace {

using clock = std::chrono::steady_clock;

std::uint64_t random_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

class completion_state {
public:
  static inline const char* name = "completion";
  using self_pointer = caf::stateful_actor<completion_state>*;

  completion_state() = default;

  ~completion_state() {
    if (exchange_)
      exchange_->abandon(); // Without effect on an answer that is complete.
  }

  void start(self_pointer actor,
             const service_handle& shared,
             exchange_handle exchange,
             bool chat,
             work_token counted);
  void accept(std::size_t which, request_id id);
  void refuse(const error& why);
  void take(const text_piece& piece);
  void take(const request_end& end);

private:
  struct choice {
    choice_text answer;
    std::optional<likelihoods> likely; ///< Where they are asked for.
    std::size_t characters = 0;        ///< Of the text that was sent or kept.
    std::uint64_t tokens = 0;
    bool ended = false;
  };

  std::optional<api_error> read(bool chat);
  std::optional<api_error> encode_prompts();
  std::optional<api_error> encode_messages();
  void ask();
  void begin_stream();
  void send(std::string chunk);
  void fail(const api_error& why);
  void complete();
  static std::vector<token_likelihood> take_shown(choice& one);
  std::uint64_t completion_tokens() const;

  self_pointer self_ = nullptr;
  service_handle shared_;
  exchange_handle exchange_;
  work_token counted_;
  clock::time_point came_ = clock::now();
  completion_wish wish_;
  answer_names names_;
  std::vector<std::vector<token_id>> prompts_;
  std::vector<choice> choices_; ///< Those of the first prompt, then those of the second, ...
  std::map<request_id, std::size_t> ids_;
  std::size_t accepted_ = 0;
  std::size_t ended_ = 0;
  bool begun_ = false;            ///< The stream.
  std::vector<std::string> held_; ///< Chunks from before every choice was accepted.
};

void completion_state::start(self_pointer actor,
                             const service_handle& shared,
                             exchange_handle exchange,
                             bool chat,
                             work_token counted) {
  self_ = actor;
  shared_ = shared;
  exchange_ = std::move(exchange);
  counted_ = std::move(counted);
  // By address: a handle would keep the actor alive that holds the exchange.
  exchange_->on_gone([who = self_->address()] {
    if (const auto living = caf::actor_cast<caf::strong_actor_ptr>(who))
      caf::anon_send_exit(living, caf::exit_reason::user_shutdown);
  });
  auto wrong = read(chat);
  if (!wrong)
    wrong = encode_prompts();
  if (wrong)
    return fail(*wrong);
  choices_.resize(prompts_.size() * wish_.n);
  if (wish_.with_logprobs)
    for (auto& one : choices_)
      one.likely.emplace(*shared_->words);
  if (wish_.max_tokens == 0u) {
    for (auto& one : choices_)
      one.answer.finish = "length";
    begin_stream();
    for (std::size_t i = 0; i < choices_.size(); ++i)
      send(finish_chunk(names_, i, "length"));
    return complete();
  }
  ask();
}

std::optional<api_error> completion_state::read(bool chat) {
  const auto& defaults = shared_->settings.generate;
  wish_.sampling.temperature = static_cast<float>(defaults.temperature);
  wish_.sampling.top_k = static_cast<std::uint32_t>(defaults.top_k);
  wish_.sampling.top_p = static_cast<float>(defaults.top_p);
  wish_.sampling.min_p = static_cast<float>(defaults.min_p);
  wish_.sampling.repetition_penalty = static_cast<float>(defaults.repetition_penalty);
  if (auto wrong = read_completion(exchange_->request().body, chat, shared_->rules, wish_))
    return wrong;
  if (!wish_.model.empty() && wish_.model != shared_->model.name)
    return api_error{
      404,
      fmt::format("there is no model {}; this server has {}", wish_.model, shared_->model.name),
      "model",
      "model_not_found"};
  // An answer that nobody asked to be repeatable differs each time.
  const bool seeded = shared_->settings.origins.contains("generate.seed");
  wish_.sampling.seed = wish_.seed ? *wish_.seed : seeded ? defaults.seed : random_seed();
  names_.chat = chat;
  names_.with_usage = wish_.include_usage;
  names_.with_logprobs = wish_.with_logprobs;
  names_.top_logprobs = wish_.top_logprobs;
  names_.id = (chat ? "chatcmpl-" : "cmpl-") + exchange_->request().id;
  names_.model = shared_->model.name;
  names_.created = std::time(nullptr);
  return std::nullopt;
}

std::optional<api_error> completion_state::encode_prompts() {
  if (wish_.chat)
    return encode_messages();
  for (auto& prompt : wish_.prompts) {
    if (!prompt.tokens.empty()) {
      prompts_.push_back(std::move(prompt.tokens));
      continue;
    }
    constexpr bool with_start_token = true;
    auto tokens = shared_->words->encode(prompt.text, with_start_token);
    if (!tokens)
      return api_error{400, tokens.error().what, "prompt", "invalid_value"};
    prompts_.push_back(std::move(*tokens));
  }
  return std::nullopt;
}

std::optional<api_error> completion_state::encode_messages() {
  if (!shared_->chat)
    return api_error{400,
                     shared_->no_chat + "; POST /v1/completions takes a plain prompt",
                     "messages",
                     "no_chat_template"};
  compute::chat::render_options options;
  const auto messages = compute::chat::parse_json(wish_.messages);
  if (!messages)
    return api_error{400, messages.error().what, "messages", "invalid_value"};
  if (!wish_.tools.empty()) {
    auto tools = compute::chat::parse_json(wish_.tools);
    if (!tools)
      return api_error{400, tools.error().what, "tools", "invalid_value"};
    options.tools = std::move(*tools);
  }
  if (!wish_.template_arguments.empty()) {
    const auto names = compute::chat::parse_json(wish_.template_arguments);
    if (!names)
      return api_error{400, names.error().what, "chat_template_kwargs", "invalid_value"};
    if (const auto* given = names->as_dictionary(); given != nullptr)
      options.variables = *given;
  }
  // Whatever a template does not get along with is the messages' fault from where it stands.
  auto tokens = shared_->chat->prompt(*shared_->words, *messages, options);
  if (!tokens)
    return api_error{400, tokens.error().what, "messages", "invalid_value"};
  prompts_.push_back(std::move(*tokens));
  return std::nullopt;
}

void completion_state::ask() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    generate_request wish;
    wish.tokens = prompts_[i / wish_.n];
    wish.sampling = to_choice(wish_.sampling);
    wish.sampling.seed += i % wish_.n; // answers to one prompt differ, and can be repeated
    wish.max_tokens =
      wish_.max_tokens.value_or(static_cast<std::uint32_t>(shared_->settings.generate.max_tokens));
    wish.stop = wish_.stop;
    wish.ignore_end = wish_.ignore_end;
    wish.with_logprobs = wish_.with_logprobs;
    wish.top_logprobs = wish_.top_logprobs;
    for (const auto& [token, bias] : wish_.bias)
      wish.bias.push_back({token, bias});
    wish.schema = wish_.schema;
    wish.label = exchange_->request().id;
    self_
      ->request(shared_->gateway,
                caf::infinite,
                std::move(wish),
                caf::actor_cast<caf::strong_actor_ptr>(self_))
      .then([this, i](request_id id) { accept(i, id); },
            [this](const caf::error& why) { refuse(from_caf(self_->system(), why)); });
  }
}

void completion_state::accept(std::size_t which, request_id id) {
  log::debug("http {} is request {}", exchange_->request().id, number(id));
  ids_.emplace(id, which);
  if (++accepted_ == choices_.size())
    begin_stream();
}

/// One of the requests was not taken: the others end with this actor.
void completion_state::refuse(const error& why) {
  auto what = to_api_error(why);
  if (what.status == 503) {
    const auto state = shared_->pulse.read();
    if (!state.ready)
      what.message += fmt::format(" (not ready for {:.1f} s)",
                                  std::chrono::duration<double>(state.since).count());
  }
  fail(what);
}

void completion_state::begin_stream() {
  if (!wish_.stream || begun_)
    return;
  begun_ = true;
  exchange_->begin_events();
  if (wish_.chat)
    for (std::size_t i = 0; i < choices_.size(); ++i)
      exchange_->send_event(role_chunk(names_, i));
  for (const auto& chunk : held_)
    exchange_->send_event(chunk);
  held_.clear();
}

void completion_state::send(std::string chunk) {
  if (!wish_.stream)
    return;
  if (begun_)
    exchange_->send_event(chunk);
  else
    held_.push_back(std::move(chunk));
}

void completion_state::take(const text_piece& piece) {
  const auto found = ids_.find(piece.request);
  if (found == ids_.end())
    return;
  auto& one = choices_[found->second];
  one.tokens += piece.tokens.size();
  if (one.likely)
    for (std::size_t i = 0; i < piece.logprobs.size(); ++i)
      one.likely->add(piece.tokens[i],
                      piece.logprobs[i],
                      i < piece.top.size() ? piece.top[i] : std::vector<token_odds>{},
                      one.answer.likely);
  if (piece.text.empty())
    return;
  one.characters += count_characters(piece.text);
  if (!wish_.stream) {
    one.answer.text += piece.text;
    return;
  }
  const auto told = take_shown(one);
  send(text_chunk(names_, found->second, piece.text, told));
}

/// The tokens whose text has been sent: what is held back, because it may be a stop string, shows
/// no tokens either.
std::vector<token_likelihood> completion_state::take_shown(choice& one) {
  auto& likely = one.answer.likely;
  const auto first_hidden = std::find_if(likely.begin(), likely.end(), [&](const auto& token) {
    return token.offset >= one.characters;
  });
  std::vector<token_likelihood> shown(std::make_move_iterator(likely.begin()),
                                      std::make_move_iterator(first_hidden));
  likely.erase(likely.begin(), first_hidden);
  return shown;
}

void completion_state::take(const request_end& end) {
  const auto found = ids_.find(end.request);
  if (found == ids_.end() || choices_[found->second].ended)
    return;
  auto& one = choices_[found->second];
  if (end.reason == finish_reason::failed || end.reason == finish_reason::cancelled)
    return refuse({static_cast<errc>(end.code), end.what});
  one.ended = true;
  one.answer.finish = end.reason == finish_reason::length ? "length" : "stop";
  if (!wish_.stream)
    one.answer.likely = take_shown(one);
  send(finish_chunk(names_, found->second, one.answer.finish));
  if (++ended_ == choices_.size())
    complete();
}

std::uint64_t completion_state::completion_tokens() const {
  std::uint64_t sum = 0;
  for (const auto& one : choices_)
    sum += one.tokens;
  return sum;
}

/// Before the stream began the status says it; within it, an event does.
void completion_state::fail(const api_error& why) {
  if (why.status >= 500)
    log::warn("http {} fails: {}", exchange_->request().id, why.message);
  else
    log::debug("http {} is refused: {}", exchange_->request().id, why.message);
  if (begun_) {
    exchange_->send_event(error_json(why));
    exchange_->send_event("[DONE]");
    exchange_->finish();
  } else {
    exchange_->respond(error_response(why, retry_after_s(*shared_)));
  }
  self_->quit();
}

void completion_state::complete() {
  token_usage usage;
  for (const auto& prompt : prompts_)
    usage.prompt_tokens += prompt.size();
  usage.completion_tokens = completion_tokens();
  if (wish_.stream) {
    if (wish_.include_usage)
      exchange_->send_event(usage_chunk(names_, usage));
    exchange_->send_event("[DONE]");
    exchange_->finish();
  } else {
    std::vector<choice_text> answers;
    answers.reserve(choices_.size());
    for (auto& one : choices_)
      answers.push_back(std::move(one.answer));
    exchange_->respond({200, "application/json", completion_json(names_, answers, usage), {}});
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - came_);
  auto& average = shared_->answer_ms;
  average.store(
    (average.load(std::memory_order_relaxed) * 7 + static_cast<std::uint64_t>(took.count())) / 8,
    std::memory_order_relaxed);
  log::debug("http {} ends with {} and {} tokens after {} ms",
             exchange_->request().id,
             usage.prompt_tokens,
             usage.completion_tokens,
             took.count());
  self_->quit();
}

caf::behavior completion(completion_state::self_pointer self,
                         const service_handle& shared,
                         const exchange_handle& exchange,
                         bool chat,
                         const work_token& counted) {
  auto& my = self->state;
  my.start(self, shared, exchange, chat, counted);
  return {
    [&my](const text_piece& piece) { my.take(piece); },
    [&my](const request_end& end) { my.take(end); },
  };
}

// -- words ----------------------------------------------------------------------------------------

http_response tokenize(const service& shared, const http_request& asked) {
  tokenize_wish wish;
  if (auto wrong = read_tokenize(asked.body, shared.rules, wish))
    return error_response(*wrong);
  auto tokens = shared.words->encode(wish.text, wish.add_special);
  if (!tokens)
    return error_response({400, tokens.error().what, "prompt", "invalid_value"});
  std::vector<std::string> pieces;
  if (wish.with_pieces)
    for (const auto token : *tokens)
      pieces.push_back(shared.words->piece(token));
  return {200, "application/json", tokens_json(*tokens, pieces, shared.model.context), {}};
}

http_response detokenize(const service& shared, const http_request& asked) {
  detokenize_wish wish;
  if (auto wrong = read_detokenize(asked.body, shared.rules, wish))
    return error_response(*wrong);
  constexpr bool skip_special = false;
  auto text = shared.words->decode(wish.tokens, skip_special);
  if (!text)
    return error_response({400, text.error().what, "tokens", "invalid_value"});
  return {200, "application/json", prompt_json(*text), {}};
}

} // namespace

unsigned retry_after_s(const service& shared) {
  const auto known = shared.pulse.status();
  const auto ahead = known ? known->conductor.queued + known->conductor.running : 0;
  const auto at_once = std::max<std::uint64_t>(1, shared.settings.state.max_sequences);
  const auto wait_ms = shared.answer_ms.load(std::memory_order_relaxed) * ahead / at_once;
  return static_cast<unsigned>(std::clamp<std::uint64_t>((wait_ms + 999) / 1000, 1, 60));
}

void spawn_completion(caf::actor_system& system,
                      const service_handle& shared,
                      exchange_handle exchange,
                      bool chat) {
  system.spawn(completion, shared, std::move(exchange), chat, count_work(shared));
}

void spawn_words(caf::actor_system& system,
                 const service_handle& shared,
                 exchange_handle exchange) {
  system.spawn([shared, exchange, counted = count_work(shared)](caf::event_based_actor*) {
    const auto& asked = exchange->request();
    exchange->respond(asked.path == "/tokenize" ? tokenize(*shared, asked)
                                                : detokenize(*shared, asked));
  });
}

} // namespace troupe::actors::serve
