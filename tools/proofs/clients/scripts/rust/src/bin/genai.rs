//! genai with its OpenAI adapter: chats, complete and streaming with usage, tools, structured output, embeddings.

use clients::*;
use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, JsonSpec, StopReason, StreamEnd, Tool, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};

type Error = Box<dyn std::error::Error>;

fn create_client() -> Client {
    let resolve = |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
        let model = ModelIden::new(AdapterKind::OpenAI, target.model.model_name);
        // The URL ends with a slash, because paths are joined to it.
        let endpoint = Endpoint::from_owned(format!("{}/", base_url()));
        Ok(ServiceTarget {
            endpoint,
            auth: AuthData::from_single(api_key()),
            model,
        })
    };
    let resolver = ServiceTargetResolver::from_resolver_fn(resolve);
    Client::builder()
        .with_service_target_resolver(resolver)
        .build()
        .expect("the client can be built")
}

fn ask(text: &str) -> ChatRequest {
    let forecast = Tool::new("forecast")
        .with_description("Returns the forecast of a city")
        .with_schema(parameters());
    ChatRequest::from_user(text).with_tools(vec![forecast])
}

/// Reads a stream to its end, also past an error.
async fn stream(client: &Client, model: &str, request: ChatRequest) -> Result<(String, StreamEnd), Error> {
    let options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true);
    let mut events = client.exec_chat_stream(model, request, Some(&options)).await?.stream;
    let mut text = String::new();
    let mut end = None;
    let mut error = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(ChatStreamEvent::Chunk(chunk)) => text += &chunk.content,
            Ok(ChatStreamEvent::End(event)) => end = Some(event),
            Ok(_) => {}
            Err(raised) => error = error.or(Some(raised)),
        }
    }
    match error {
        Some(error) => Err(error.into()),
        None => Ok((text, end.ok_or("the stream has no end")?)),
    }
}

fn is_completed(reason: Option<StopReason>) -> &'static str {
    if matches!(reason, Some(StopReason::Completed(_))) {
        "stop"
    } else {
        "another"
    }
}

async fn chats(client: &Client, model: &str) -> Result<(), Error> {
    let response = client.exec_chat(model, ChatRequest::from_user(WORDS), None).await?;
    let tokens = response.usage.completion_tokens.unwrap_or(0);
    check_said(
        response.first_text().unwrap_or(""),
        is_completed(response.stop_reason.clone()),
        tokens,
    );
    let (text, end) = stream(client, model, ChatRequest::from_user(WORDS)).await?;
    let tokens = end
        .captured_usage
        .and_then(|usage| usage.completion_tokens)
        .unwrap_or(0);
    check_said(&text, is_completed(end.captured_stop_reason), tokens);

    let (_, end) = stream(client, model, ask(QUESTION)).await?;
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    assert_eq!(calls.len(), 2, "calls");
    let results: Vec<ToolResponse> = calls
        .iter()
        .map(|call| {
            check_arguments(&call.fn_arguments.to_string());
            ToolResponse::from_tool_call(call, tool_result())
        })
        .collect();
    let mut question = ask(QUESTION).append_message(ChatMessage::from(calls));
    for result in results {
        question = question.append_message(result);
    }
    check_answer(
        client
            .exec_chat(model, question, None)
            .await?
            .first_text()
            .unwrap_or(""),
    );

    let schema = serde_json::to_value(schemars::schema_for!(Place))?;
    let options = ChatOptions::default().with_response_format(JsonSpec::new("place", schema));
    let response = client
        .exec_chat(model, ChatRequest::from_user("Where?"), Some(&options))
        .await?;
    serde_json::from_str::<Place>(response.first_text().unwrap_or(""))?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = create_client();
    for model in MODELS {
        chats(&client, model).await?;
    }
    let embedded = client
        .embed_batch(EMBEDDING, vec!["one".into(), "two".into()], None)
        .await?;
    assert!(embedded.embeddings.iter().all(|item| item.vector().len() == DIMENSIONS));
    check_interrupted_streams(async |prompt: &str| stream(&client, REASONING, ask(prompt)).await.map(drop)).await;
    Ok(())
}
