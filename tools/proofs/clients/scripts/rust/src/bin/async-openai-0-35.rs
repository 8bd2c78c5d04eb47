//! async-openai 0.35: chats, streaming, tools. It reconnects to an interrupted stream as browsers do for an
//! `EventSource`: while its stream is read, it repeats the request, with `Last-Event-ID`.

use async_openai_0_35::Client;
use async_openai_0_35::config::OpenAIConfig;
use async_openai_0_35::error::OpenAIError;
use async_openai_0_35::types::chat::{CreateChatCompletionRequest, FinishReason};
use clients::*;
use futures::StreamExt;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

/// How many events are read after the first error. If its repeats are served, the stream has no end.
const EVENTS_AFTER_ERROR: usize = 40;

#[derive(Default)]
struct Streamed {
    text: String,
    finish_reason: Option<FinishReason>,
    output_tokens: u32,
    errors: Vec<OpenAIError>,
}

/// Reads a stream to its end, or until `EVENTS_AFTER_ERROR`.
async fn stream(client: &Client<OpenAIConfig>, body: &Value) -> Result<Streamed, OpenAIError> {
    let request: CreateChatCompletionRequest = request(body);
    let mut chunks = client.chat().create_stream(request).await?;
    let mut all = Streamed::default();
    let mut after_error = 0;
    while after_error < EVENTS_AFTER_ERROR
        && let Some(chunk) = chunks.next().await
    {
        after_error += usize::from(!all.errors.is_empty());
        match chunk {
            Err(error) => all.errors.push(error),
            Ok(chunk) => {
                all.output_tokens = chunk.usage.map_or(all.output_tokens, |usage| usage.completion_tokens);
                for choice in chunk.choices {
                    all.text += choice.delta.content.as_deref().unwrap_or("");
                    all.finish_reason = choice.finish_reason.or(all.finish_reason);
                }
            }
        }
    }
    Ok(all)
}

async fn chats(client: &Client<OpenAIConfig>, model: &str) -> Result<(), Error> {
    let words = json!({ "model": model, "messages": user(WORDS), "stream_options": { "include_usage": true } });
    let all = stream(client, &words).await?;
    assert!(
        all.errors.is_empty(),
        "a complete stream has the errors {:?}",
        all.errors
    );
    check_said(&all.text, all.finish_reason, all.output_tokens);

    let mut question = json!({ "model": model, "messages": user(QUESTION), "tools": chat_tools() });
    let called = client.chat().create(request(&question)).await?;
    let message = serde_json::to_value(&called.choices[0].message)?;
    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
    assert_eq!(calls.len(), 2, "calls");
    let messages = question["messages"].as_array_mut().expect("an array");
    messages.push(json!({ "role": "assistant", "tool_calls": calls }));
    for call in &calls {
        check_arguments(call["function"]["arguments"].as_str().unwrap_or(""));
        messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": tool_result() }));
    }
    let chat = client.chat().create(request(&question)).await?;
    check_answer(chat.choices[0].message.content.as_deref().unwrap_or(""));
    Ok(())
}

/// Checks that the last error of an interrupted stream is the rejection of the repeated request. A request that failed
/// before the first byte is not repeated.
fn check_repeat(errors: &[OpenAIError]) {
    match errors {
        [] | [OpenAIError::ApiError(_)] => {}
        [.., OpenAIError::ApiError(rejection)] if rejection.message.contains("Last-Event-ID") => {}
        _ => panic!("no repeated request was rejected: {errors:?}"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::with_config(OpenAIConfig::new().with_api_base(base_url()).with_api_key(api_key()));
    for model in MODELS {
        chats(&client, model).await?;
    }
    check_interrupted_streams(async |prompt: &str| {
        let body = json!({ "model": REASONING, "messages": user(prompt), "tools": chat_tools() });
        let errors = stream(&client, &body).await?.errors;
        check_repeat(&errors);
        errors.into_iter().next().map_or(Ok(()), Err)
    })
    .await;
    Ok(())
}
