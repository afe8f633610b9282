"""Drives a Troupe server with the official client: openai_client.py http://127.0.0.1:8080"""

import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)

models = [model.id for model in client.models.list()]
assert len(models) == 1, models
model = models[0]

whole = client.completions.create(model=model, prompt="In the beginning", max_tokens=8)
assert whole.choices[0].finish_reason == "length", whole
assert whole.usage.completion_tokens == 8, whole

text = ""
reasons = []
usage = None
for chunk in client.completions.create(
    model=model,
    prompt="In the beginning",
    max_tokens=8,
    stream=True,
    stream_options={"include_usage": True},
):
    for choice in chunk.choices:
        text += choice.text
        if choice.finish_reason is not None:
            reasons.append(choice.finish_reason)
    usage = chunk.usage or usage
assert text == whole.choices[0].text, (text, whole)
assert reasons == ["length"], reasons
assert usage.completion_tokens == 8, usage

likely = client.completions.create(model=model, prompt="In the", max_tokens=4, logprobs=2)
told = likely.choices[0].logprobs
assert "".join(told.tokens) == likely.choices[0].text, likely
assert [len(top) for top in told.top_logprobs] == [2, 2, 2, 2], likely
assert all(one <= 0 for one in told.token_logprobs), likely

bound = client.completions.create(
    model=model,
    prompt="In the",
    max_tokens=60,
    extra_body={
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"enum": ["one", "two"]}},
        }
    },
)
assert bound.choices[0].text.strip() in ('"one"', '"two"'), bound

try:
    client.completions.create(model=model, prompt="In", temperature=-1)
    raise AssertionError("a temperature below 0 was accepted")
except openai.BadRequestError as refusal:
    assert refusal.param == "temperature", refusal

try:
    client.completions.create(model="another", prompt="In")
    raise AssertionError("another model was accepted")
except openai.NotFoundError as refusal:
    assert refusal.code == "model_not_found", refusal

print("all well")
