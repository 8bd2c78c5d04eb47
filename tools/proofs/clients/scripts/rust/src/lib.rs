//! What the programs share: their environment, prompts and checks. A check that does not hold ends the program.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// A prompt that is answered with `SAID`, in three tokens.
pub const WORDS: &str = "Hello [[sandbox tokens=3]]";
pub const SAID: &str = "every coin that";
/// A prompt that makes the model call the forecast tool twice, and then answer with more than `SAID`.
pub const QUESTION: &str = "Weather? [[sandbox tools=2]]";
pub const MODELS: [&str; 2] = ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"];
/// A model whose reasoning is visible, so that a stream can break in it.
pub const REASONING: &str = "openai/gpt-oss-120b";
pub const EMBEDDING: &str = "openai/text-embedding-3-small";
pub const DIMENSIONS: usize = 1536;

/// The structured output that the programs request.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct Place {
    pub city: String,
    pub days: i64,
}

/// The arguments of the forecast tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    city: String,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

pub fn base_url() -> String {
    format!("{}/v1", variable("GATEWAY_URL"))
}

pub fn api_key() -> String {
    variable("API_KEY")
}

pub fn tool_result() -> String {
    variable("TOOL_RESULT")
}

/// The JSON schema of the forecast tool.
pub fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": { "city": { "type": "string", "enum": ["Ur"] } },
        "required": ["city"],
        "additionalProperties": false,
    })
}

/// Creates a typed request.
pub fn request<T: DeserializeOwned>(body: &Value) -> T {
    serde_json::from_value(body.clone()).expect("the types of the client fit")
}

/// The messages of a chat that begins with the text.
pub fn user(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// The forecast tool of a chat.
pub fn chat_tools() -> Value {
    json!([{ "type": "function", "function": { "name": "forecast", "parameters": parameters(), "strict": true } }])
}

/// Checks the response to `WORDS`.
pub fn check_said(text: &str, finish_reason: impl Debug, output_tokens: impl Into<i64>) {
    assert_eq!(text, SAID);
    let finish_reason = format!("{finish_reason:?}").to_lowercase();
    assert!(finish_reason.contains("stop"), "the finish reason is {finish_reason}");
    assert_eq!(output_tokens.into(), 3, "output tokens");
}

/// Checks the response that follows the tool results.
pub fn check_answer(text: &str) {
    assert!(text.starts_with("every coin"), "the answer after the tools is {text:?}");
}

/// Checks the arguments of a call of the forecast tool.
pub fn check_arguments(arguments: &str) {
    let parsed: Result<Arguments, _> = serde_json::from_str(arguments);
    assert!(
        parsed.is_ok_and(|parsed| parsed.city == "Ur"),
        "the arguments of the call are {arguments:?}"
    );
}

/// Streams a chat for each of the prompts. Each must return an error.
pub async fn check_interrupted_streams<Error>(stream: impl AsyncFn(&str) -> Result<(), Error>) {
    let prompts = std::env::var("INTERRUPTED_PROMPTS").unwrap_or_else(|_| "[]".into());
    let prompts: Vec<String> = serde_json::from_str(&prompts).expect("INTERRUPTED_PROMPTS is an array");
    for (index, prompt) in prompts.iter().enumerate() {
        assert!(
            stream(prompt).await.is_err(),
            "stream {} ended without an error",
            index + 1
        );
    }
}
