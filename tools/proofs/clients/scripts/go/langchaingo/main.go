// LangChainGo's OpenAI model: chats, complete and streaming with usage, tools, embeddings.
package main

import (
	"context"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"countinghouse/clients/proof"
)

var (
	ctx   = context.Background()
	tools = llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{
		Name: "forecast", Description: "Returns the forecast of a city", Parameters: proof.Parameters, Strict: true}}})
)

func createModel(name string) *openai.LLM {
	return proof.Must(openai.New(
		openai.WithToken(proof.APIKey), openai.WithBaseURL(proof.BaseURL), openai.WithModel(name),
		openai.WithEmbeddingModel("openai/text-embedding-3-small")))
}

func user(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func checkSaid(response *llms.ContentResponse) {
	choice := response.Choices[0]
	proof.CheckSaid(choice.Content, choice.StopReason, choice.GenerationInfo["CompletionTokens"].(int))
}

func chats(name string) {
	model := createModel(name)
	var text string
	streaming := llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
		text += string(chunk)
		return nil
	})
	checkSaid(proof.Must(model.GenerateContent(ctx, user(proof.Words))))
	checkSaid(proof.Must(model.GenerateContent(ctx, user(proof.Words), streaming)))
	proof.Check(text == proof.Said, "the chunks are %q", text)

	messages := user(proof.Question)
	called := proof.Must(model.GenerateContent(ctx, messages, tools, streaming)).Choices[0]
	proof.Check(called.StopReason == "tool_calls", "the finish reason is %q", called.StopReason)
	proof.Check(len(called.ToolCalls) == 2, "%d calls", len(called.ToolCalls))
	turn := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	var results []llms.MessageContent
	for _, call := range called.ToolCalls {
		proof.CheckArguments(call.FunctionCall.Arguments)
		turn.Parts = append(turn.Parts, call)
		result := llms.ToolCallResponse{ToolCallID: call.ID, Name: "forecast", Content: proof.ToolResult}
		results = append(results, llms.MessageContent{
			Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{result}})
	}
	messages = append(append(messages, turn), results...)
	proof.CheckAnswer(proof.Must(model.GenerateContent(ctx, messages, tools)).Choices[0].Content)
}

func main() {
	for _, name := range proof.Models {
		chats(name)
	}
	model := createModel(proof.Reasoning)
	for _, item := range proof.Must(model.CreateEmbedding(ctx, []string{"one", "two"})) {
		proof.Check(len(item) == 1536, "%d dimensions", len(item))
	}
	ignore := llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })
	proof.CheckInterruptedStreams(func(prompt string) error {
		_, err := model.GenerateContent(ctx, user(prompt), tools, ignore)
		return err
	})
}
