//! async-openai: chats and Responses, complete and streaming, tools, structured output, embeddings, a streamed image.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{CompletionUsage, CreateChatCompletionRequest, FinishReason};
use async_openai::types::embeddings::CreateEmbeddingRequest;
use async_openai::types::images::{CreateImageRequest, ImageGenStreamEvent};
use async_openai::types::responses::{CreateResponse, Response, ResponseStreamEvent};
use clients::*;
use futures::StreamExt;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

#[derive(Default)]
struct Streamed {
    text: String,
    /// Ids and arguments.
    calls: Vec<(String, String)>,
    finish_reason: Option<FinishReason>,
    usage: Option<CompletionUsage>,
}

/// Reads a stream to its end, also past an error.
async fn stream(client: &Client<OpenAIConfig>, body: &Value) -> Result<Streamed, OpenAIError> {
    let request: CreateChatCompletionRequest = request(body);
    let mut chunks = client.chat().create_stream(request).await?;
    let mut all = Streamed::default();
    let mut error = None;
    while let Some(chunk) = chunks.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(raised) => {
                error = error.or(Some(raised));
                continue;
            }
        };
        all.usage = chunk.usage.or(all.usage);
        for choice in chunk.choices {
            all.text += choice.delta.content.as_deref().unwrap_or("");
            all.finish_reason = choice.finish_reason.or(all.finish_reason);
            for call in choice.delta.tool_calls.unwrap_or_default() {
                if call.index as usize == all.calls.len() {
                    all.calls
                        .push((call.id.clone().expect("a new call has an id"), String::new()));
                }
                let arguments = call.function.and_then(|function| function.arguments);
                all.calls[call.index as usize].1 += &arguments.unwrap_or_default();
            }
        }
    }
    error.map_or(Ok(all), Err)
}

async fn chats(client: &Client<OpenAIConfig>, model: &str) -> Result<(), Error> {
    let mut words = json!({ "model": model, "messages": user(WORDS) });
    let chat = client.chat().create(request(&words)).await?;
    let text = chat.choices[0].message.content.as_deref().unwrap_or("");
    check_said(
        text,
        chat.choices[0].finish_reason,
        chat.usage.expect("the chat has usage").completion_tokens,
    );
    for options in [Value::Null, json!({ "include_usage": true })] {
        words["stream_options"] = options;
        let all = stream(client, &words).await?;
        check_said(
            &all.text,
            all.finish_reason,
            all.usage.expect("the stream has usage").completion_tokens,
        );
    }

    let schema = json!({ "name": "place", "schema": schemars::schema_for!(Place) });
    let place = json!({
        "model": model,
        "messages": user("Where?"),
        "response_format": { "type": "json_schema", "json_schema": schema },
    });
    let chat = client.chat().create(request(&place)).await?;
    serde_json::from_str::<Place>(chat.choices[0].message.content.as_deref().unwrap_or(""))?;

    let mut question = json!({ "model": model, "messages": user(QUESTION), "tools": chat_tools() });
    let called = stream(client, &question).await?;
    assert_eq!(called.finish_reason, Some(FinishReason::ToolCalls));
    assert_eq!(called.calls.len(), 2, "calls");
    let messages = question["messages"].as_array_mut().expect("an array");
    let calls: Vec<Value> = called
        .calls
        .iter()
        .map(|(id, arguments)| {
            check_arguments(arguments);
            json!({ "id": id, "type": "function", "function": { "name": "forecast", "arguments": arguments } })
        })
        .collect();
    messages.push(json!({ "role": "assistant", "tool_calls": calls }));
    for (id, _) in &called.calls {
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": tool_result() }));
    }
    let chat = client.chat().create(request(&question)).await?;
    check_answer(chat.choices[0].message.content.as_deref().unwrap_or(""));
    Ok(())
}

async fn stream_response(client: &Client<OpenAIConfig>, body: &Value) -> Result<Response, Error> {
    let mut events = client
        .responses()
        .create_stream(request::<CreateResponse>(body))
        .await?;
    let mut text = String::new();
    let mut completed = None;
    while let Some(event) = events.next().await {
        match event? {
            ResponseStreamEvent::ResponseOutputTextDelta(delta) => text += &delta.delta,
            ResponseStreamEvent::ResponseCompleted(event) => completed = Some(event.response),
            _ => {}
        }
    }
    let response = completed.ok_or("the stream has no response.completed")?;
    assert_eq!(response.output_text().unwrap_or_default(), text);
    Ok(response)
}

async fn responses(client: &Client<OpenAIConfig>, model: &str) -> Result<(), Error> {
    let words = json!({ "model": model, "input": WORDS });
    let whole = client.responses().create(request::<CreateResponse>(&words)).await?;
    for response in [whole, stream_response(client, &words).await?] {
        assert_eq!(response.output_text().as_deref(), Some(SAID));
        assert_eq!(response.usage.expect("the response has usage").output_tokens, 3);
    }
    let function = json!({ "type": "function", "name": "forecast", "parameters": parameters(), "strict": true });
    // With models that store nothing by default, a response is stored only on request.
    let mut question = json!({ "model": model, "input": QUESTION, "store": true, "tools": [function] });
    let called = stream_response(client, &question).await?;
    let output = serde_json::to_value(&called.output)?;
    let results: Vec<Value> = output
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item["type"] == "function_call")
        .map(|call| {
            check_arguments(call["arguments"].as_str().unwrap_or(""));
            json!({ "type": "function_call_output", "call_id": call["call_id"], "output": tool_result() })
        })
        .collect();
    assert_eq!(results.len(), 2, "calls");
    question["previous_response_id"] = json!(called.id);
    question["input"] = json!(results);
    let answered = client.responses().create(request::<CreateResponse>(&question)).await?;
    check_answer(&answered.output_text().unwrap_or_default());
    Ok(())
}

/// The last event of a streamed image must have all its required fields: its size, quality, background and usage.
async fn images(client: &Client<OpenAIConfig>) -> Result<(), Error> {
    let body = json!({ "model": "gpt-image-1.5", "prompt": "A coin", "partial_images": 1 });
    let mut events = client
        .images()
        .generate_stream(request::<CreateImageRequest>(&body))
        .await?;
    let mut completed = None;
    while let Some(event) = events.next().await {
        if let ImageGenStreamEvent::Completed(image) = event? {
            completed = Some(image);
        }
    }
    let image = completed.ok_or("the stream has no image_generation.completed")?;
    assert!(
        image.b64_json.len() > 100 && image.usage.output_tokens > 0,
        "the image is incomplete"
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::with_config(OpenAIConfig::new().with_api_base(base_url()).with_api_key(api_key()));
    for model in MODELS {
        chats(&client, model).await?;
        responses(&client, model).await?;
    }
    let body = json!({ "model": EMBEDDING, "input": ["one", "two"] });
    let embedded = client
        .embeddings()
        .create(request::<CreateEmbeddingRequest>(&body))
        .await?;
    assert!(embedded.data.iter().all(|item| item.embedding.len() == DIMENSIONS));
    images(&client).await?;
    check_interrupted_streams(async |prompt: &str| {
        let body = json!({ "model": REASONING, "messages": user(prompt), "tools": chat_tools() });
        stream(&client, &body).await.map(drop)
    })
    .await;
    Ok(())
}
