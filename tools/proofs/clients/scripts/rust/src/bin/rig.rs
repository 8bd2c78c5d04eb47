//! Rig's agents over chats and over Responses: complete and streaming, and a tool that Rig runs. Typed prompts of an agent with
//! tools send no schema, so they are not tested.

use clients::*;
use futures::StreamExt;
use rig::agent::MultiTurnStreamItem;
use rig::prelude::*;
use rig::providers::openai::{OpenAI, OpenAIConfig};
use rig::streaming::{Item, StreamEvent};
use rig::tool::PortableTool;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

type Error = Box<dyn std::error::Error>;

static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Weather;

impl PortableTool for Weather {
    const NAME: &'static str = "forecast";
    type Args = Value;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Returns the forecast of a city".into()
    }

    fn parameters(&self) -> Value {
        parameters()
    }

    async fn call(&self, arguments: Value) -> Result<String, Infallible> {
        check_arguments(&arguments.to_string());
        CALLS.fetch_add(1, Ordering::Relaxed);
        Ok(tool_result())
    }
}

/// Reads a stream to its end, also past an error. Returns the last text and the number of its output tokens.
async fn stream(agent: &Agent, prompt: &str) -> Result<(String, Option<u64>), Error> {
    let mut items = agent.prompt(prompt).max_turns(3).stream();
    let mut text = String::new();
    let mut tokens = None;
    let mut error = None;
    while let Some(item) = items.next().await {
        match item {
            Ok(MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text { text: delta, .. }))) => {
                text += &delta;
            }
            Ok(MultiTurnStreamItem::FinalResponse(response)) => {
                assert_eq!(response.output(), text);
                tokens = response.usage.output_tokens;
            }
            Ok(_) => {}
            Err(raised) => error = error.or(Some(raised)),
        }
    }
    error.map_or(Ok((text, tokens)), |error| Err(error.into()))
}

async fn agents(agent: &Agent) -> Result<(), Error> {
    let response = agent.prompt(WORDS).await?;
    assert_eq!(
        (response.output().as_str(), response.usage.output_tokens),
        (SAID, Some(3))
    );
    assert_eq!(stream(agent, WORDS).await?, (SAID.into(), Some(3)));
    check_answer(&agent.prompt(QUESTION).max_turns(3).await?.output());
    check_answer(&stream(agent, QUESTION).await?.0);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client: OpenAI = OpenAIConfig::new(api_key()).with_base_url(base_url()).client();
    for model in MODELS {
        agents(&AgentBuilder::new(client.chat(model)).tool(Weather).build()).await?;
        agents(&AgentBuilder::new(client.responses(model)).tool(Weather).build()).await?;
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), 16, "calls of the tool");
    let agent = AgentBuilder::new(client.chat(REASONING)).tool(Weather).build();
    check_interrupted_streams(async |prompt: &str| stream(&agent, prompt).await.map(drop)).await;
    Ok(())
}
