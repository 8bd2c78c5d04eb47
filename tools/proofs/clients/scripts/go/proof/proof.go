// Package proof holds what the programs share: their environment, prompts and checks.
package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
)

const (
	// Words is a prompt that is answered with Said, in three tokens.
	Words = "Hello [[sandbox tokens=3]]"
	Said  = "every coin that"
	// Question is a prompt that makes the model call the forecast tool twice, and then answer with more than Said.
	Question = "Weather? [[sandbox tools=2]]"
	GPT      = "openai/gpt-5-mini"
	Claude   = "anthropic/claude-haiku-4.5"
	// Reasoning is a model whose reasoning is visible, so that a stream can break in it.
	Reasoning = "openai/gpt-oss-120b"
)

var (
	GatewayURL = os.Getenv("GATEWAY_URL")
	BaseURL    = GatewayURL + "/v1"
	APIKey     = os.Getenv("API_KEY")
	ToolResult = os.Getenv("TOOL_RESULT")
	Models     = []string{GPT, Claude}
	// Parameters is the JSON schema of the forecast tool.
	Parameters = map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Ur"}}},
		"required":             []string{"city"},
		"additionalProperties": false,
	}
)

// Place is the structured output that the programs request.
type Place struct {
	City string `json:"city" jsonschema:"enum=Ur"`
	Days int    `json:"days"`
}

// PlaceSchema is the JSON schema of Place.
var PlaceSchema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"city": map[string]any{"type": "string", "enum": []string{"Ur"}},
		"days": map[string]any{"type": "integer"},
	},
	"required":             []string{"city", "days"},
	"additionalProperties": false,
}

// Raw returns a JSON schema as JSON.
func Raw(schema map[string]any) json.RawMessage {
	return Must(json.Marshal(schema))
}

// Check ends the program with the message and the line of the check unless the condition holds.
func Check(holds bool, format string, values ...any) {
	if !holds {
		fail(format, values...)
	}
}

// Must returns the value; it ends the program if there is an error.
func Must[T any](value T, err error) T {
	if err != nil {
		fail("%v", err)
	}
	return value
}

func fail(format string, values ...any) {
	_, file, line, _ := runtime.Caller(2)
	fmt.Fprintf(os.Stderr, "%s:%d: %s\n", file, line, fmt.Sprintf(format, values...))
	os.Exit(1)
}

// CheckSaid checks the response to Words.
func CheckSaid(text string, finishReason string, outputTokens int) {
	if text != Said || finishReason != "stop" || outputTokens != 3 {
		fail("the response is %q with finish reason %q and %d tokens", text, finishReason, outputTokens)
	}
}

// CheckAnswer checks the response that follows the tool results.
func CheckAnswer(text string) {
	if !strings.HasPrefix(text, "every coin") {
		fail("the answer after the tools is %q", text)
	}
}

// CheckArguments checks the arguments of a call of the forecast tool.
func CheckArguments(arguments string) {
	var parsed map[string]any
	if json.Unmarshal([]byte(arguments), &parsed) != nil || len(parsed) != 1 || parsed["city"] != "Ur" {
		fail("the arguments of the call are %q", arguments)
	}
}

// CheckPlace checks a structured output.
func CheckPlace(text string) {
	var place Place
	if err := json.Unmarshal([]byte(text), &place); err != nil || place.City != "Ur" {
		fail("the structured output is %q", text)
	}
}

// CheckInterruptedStreams streams a chat for each of the prompts. Each must return an error.
func CheckInterruptedStreams(stream func(prompt string) error) {
	var prompts []string
	if text := os.Getenv("INTERRUPTED_PROMPTS"); text != "" {
		if err := json.Unmarshal([]byte(text), &prompts); err != nil {
			fail("INTERRUPTED_PROMPTS: %v", err)
		}
	}
	for index, prompt := range prompts {
		if stream(prompt) == nil {
			fail("stream %d ended without an error", index+1)
		}
	}
}
