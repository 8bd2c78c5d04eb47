//! openai-api-rs: chats, complete and streaming, tools, Responses, embeddings.
//!
//! Its `chat_completion_stream` hides errors of the connection: it writes them to the standard error and ends. Its
//! `try_chat_completion_stream` returns them, and is used here. Neither passes on finish reasons, usage, or the index of
//! a tool call, so the tool loop is not streamed.

use clients::*;
use futures::StreamExt;
use openai_api_rs::v1::api::OpenAIClient;
use openai_api_rs::v1::chat_completion::chat_completion::ChatCompletionRequest;
use openai_api_rs::v1::chat_completion::chat_completion_stream::{
    ChatCompletionStreamRequest, ChatCompletionStreamResponse,
};
use openai_api_rs::v1::chat_completion::{ChatCompletionMessage, Content, FinishReason, MessageRole, Tool};
use openai_api_rs::v1::embedding::EmbeddingRequest;
use openai_api_rs::v1::responses::responses::CreateResponseRequest;
use serde_json::json;

type Error = Box<dyn std::error::Error>;

fn message(role: MessageRole, text: &str) -> ChatCompletionMessage {
    ChatCompletionMessage {
        role,
        content: Content::Text(text.into()),
        name: None,
        tool_calls: None,
        tool_call_id: None,
    }
}

fn tools() -> Vec<Tool> {
    serde_json::from_value(
        json!([{ "type": "function", "function": { "name": "forecast", "parameters": parameters() } }]),
    )
    .expect("the types of the client fit")
}

/// Reads a stream to its end, also past an error.
/// Checks the arguments of a call. The client does not send the `enum` of the city.
fn check_city(arguments: &str) {
    assert!(arguments.contains("city"), "the arguments of the call are {arguments:?}");
}

async fn stream(client: &OpenAIClient, model: &str, prompt: &str) -> Result<String, Error> {
    let request =
        ChatCompletionStreamRequest::new(model.into(), vec![message(MessageRole::user, prompt)]).tools(tools());
    let mut chunks = Box::pin(client.try_chat_completion_stream(request).await?);
    let mut text = String::new();
    let mut is_done = false;
    let mut error = None;
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(ChatCompletionStreamResponse::Content(delta)) => text += &delta,
            Ok(ChatCompletionStreamResponse::Done) => is_done = true,
            Ok(_) => {}
            Err(raised) => error = error.or(Some(raised)),
        }
    }
    if let Some(error) = error {
        return Err(error.into());
    }
    assert!(is_done, "the stream ended without [DONE] and without an error");
    Ok(text)
}

async fn chats(client: &mut OpenAIClient, model: &str) -> Result<(), Error> {
    let words = ChatCompletionRequest::new(model.into(), vec![message(MessageRole::user, WORDS)]);
    let chat = client.chat_completion(words).await?.inner;
    let choice = &chat.choices[0];
    check_said(
        choice.message.content.as_deref().unwrap_or(""),
        &choice.finish_reason,
        chat.usage.completion_tokens,
    );
    assert_eq!(stream(client, model, WORDS).await?, SAID);

    let mut messages = vec![message(MessageRole::user, QUESTION)];
    let question = ChatCompletionRequest::new(model.into(), messages.clone()).tools(tools());
    let called = client.chat_completion(question).await?.inner;
    assert!(
        matches!(called.choices[0].finish_reason, Some(FinishReason::tool_calls)),
        "the finish reason is another"
    );
    let calls = called.choices[0].message.tool_calls.clone().unwrap_or_default();
    assert_eq!(calls.len(), 2, "calls");
    messages.push(ChatCompletionMessage {
        tool_calls: Some(calls.clone()),
        ..message(MessageRole::assistant, "")
    });
    for call in calls {
        check_city(call.function.arguments.as_deref().unwrap_or(""));
        messages.push(ChatCompletionMessage {
            tool_call_id: Some(call.id),
            ..message(MessageRole::tool, &tool_result())
        });
    }
    let question = ChatCompletionRequest::new(model.into(), messages).tools(tools());
    let answered = client.chat_completion(question).await?.inner;
    check_answer(answered.choices[0].message.content.as_deref().unwrap_or(""));

    let request: CreateResponseRequest = serde_json::from_value(json!({ "model": model, "input": WORDS }))?;
    let response = client.create_response(request).await?.inner;
    assert_eq!(response.status.as_deref(), Some("completed"));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut client = OpenAIClient::builder()
        .with_endpoint(base_url())
        .with_api_key(api_key())
        .build()?;
    for model in MODELS {
        chats(&mut client, model).await?;
    }
    let embedded = client
        .embedding(EmbeddingRequest::new(
            EMBEDDING.into(),
            vec!["one".into(), "two".into()],
        ))
        .await?;
    assert!(
        embedded
            .inner
            .data
            .iter()
            .all(|item| item.embedding.len() == DIMENSIONS)
    );
    check_interrupted_streams(async |prompt: &str| stream(&client, REASONING, prompt).await.map(drop)).await;
    Ok(())
}
