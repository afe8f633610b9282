#include "actors/control/answer_gathering.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

namespace {

std::string to_word(finish_reason reason) {
  switch (reason) {
  case finish_reason::end: return "stop";
  case finish_reason::length: return "length";
  case finish_reason::cancelled: return "cancelled";
  case finish_reason::failed: return "error";
  }
  return "error";
}

} // namespace

void answer_gathering::hear(client_event& what) {
  if (auto* yes = std::get_if<request_accepted>(&what)) {
    accept(*yes);
  } else if (auto* no = std::get_if<request_refused>(&what)) {
    if (no->ask - first_ask_ < answers_.size())
      end(no->ask - first_ask_, no->why, "error");
  } else if (auto* piece = std::get_if<text_piece>(&what)) {
    if (const auto index = index_of(piece->request, what))
      add(*index, *piece);
  } else if (auto* ending = std::get_if<request_end>(&what)) {
    if (const auto index = index_of(ending->request, what))
      finish(*index, *ending);
  }
}

std::vector<request_id> answer_gathering::running() const {
  std::vector<request_id> found;
  for (const auto& [request, index] : index_of_)
    found.push_back(request);
  return found;
}

std::vector<answer_gathering::open_stream> answer_gathering::streams() const {
  std::vector<open_stream> found;
  for (const auto& [request, index] : index_of_)
    if (answers_[index].finish.empty())
      found.push_back(
        {first_ask_ + index, request, static_cast<std::uint32_t>(answers_[index].tokens.size())});
  return found;
}

void answer_gathering::end_unaccepted(const error& why) {
  std::vector<bool> accepted(answers_.size(), false);
  for (const auto& [request, index] : index_of_)
    accepted[index] = true;
  for (std::size_t index = 0; index < answers_.size(); ++index)
    if (!accepted[index])
      end(index, why, "error");
}

void answer_gathering::end_all(const error& why, const std::string& finish) {
  for (std::size_t index = 0; index < answers_.size(); ++index)
    end(index, why, finish);
}

// Pieces may overtake the answer that names their request: they wait for it.
std::optional<std::size_t> answer_gathering::index_of(request_id request, client_event& what) {
  const auto found = index_of_.find(request);
  if (found != index_of_.end())
    return found->second;
  early_[request].push_back(std::move(what));
  return std::nullopt;
}

void answer_gathering::accept(const request_accepted& yes) {
  const auto index = yes.ask - first_ask_;
  if (index >= answers_.size())
    return; // An ask of an earlier round that was given up.
  index_of_[yes.request] = index;
  auto waiting = early_.extract(yes.request);
  if (waiting.empty())
    return;
  for (auto& what : waiting.mapped())
    hear(what);
}

void answer_gathering::add(std::size_t index, const text_piece& piece) {
  auto& answer = answers_[index];
  if (!answer.finish.empty())
    return;
  if (piece.first < answer.tokens.size())
    return; // once more: a stream was attached again while its former pieces were on their way
  if (piece.first != answer.tokens.size())
    return end(index,
               {errc::contract_violation,
                fmt::format("tokens from {} on came where token {} was due",
                            piece.first,
                            answer.tokens.size())},
               "error");
  answer.text += piece.text;
  answer.tokens.insert(answer.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  answer.logprobs.insert(answer.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
  for (const auto& place : piece.top) {
    auto& told = answer.top.emplace_back();
    for (const auto& one : place)
      told.push_back({one.token, one.logprob});
  }
  answer.digests.insert(answer.digests.end(), piece.digests.begin(), piece.digests.end());
  if (on_text_ && !piece.text.empty())
    on_text_(index, piece.text);
}

void answer_gathering::finish(std::size_t index, const request_end& ending) {
  constexpr double us = 1e-6;
  auto& answer = answers_[index];
  answer.prompt_tokens = ending.prompt_tokens;
  answer.queued_s = static_cast<double>(ending.queued_us) * us;
  answer.first_token_s = static_cast<double>(ending.first_token_us) * us;
  answer.total_s = static_cast<double>(ending.total_us) * us;
  index_of_.erase(ending.request);
  end(index, {static_cast<errc>(ending.code), ending.what}, to_word(ending.reason));
}

void answer_gathering::end(std::size_t index, const error& why, const std::string& finish) {
  auto& answer = answers_[index];
  if (!answer.finish.empty())
    return;
  answer.finish = finish;
  answer.code = why.code;
  answer.what = why.what;
  --open_;
}

} // namespace troupe::actors
