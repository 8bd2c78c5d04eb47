// OpenAI's client for Go: chats and Responses, complete and streaming with its accumulators, tools, embeddings.
package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"countinghouse/clients/proof"
)

var (
	ctx    = context.Background()
	client = openai.NewClient(
		option.WithBaseURL(proof.BaseURL), option.WithAPIKey(proof.APIKey), option.WithMaxRetries(0))
	tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "forecast", Parameters: proof.Parameters, Strict: openai.Bool(true)})}
)

type messages = []openai.ChatCompletionMessageParamUnion

func user(text string) messages {
	return messages{openai.UserMessage(text)}
}

// stream reads a stream to its end. The usage is not requested; it must not replace the finish reason.
func stream(params openai.ChatCompletionNewParams) (openai.ChatCompletion, error) {
	chunks := client.Chat.Completions.NewStreaming(ctx, params)
	defer chunks.Close()
	accumulator := openai.ChatCompletionAccumulator{}
	for chunks.Next() {
		if !accumulator.AddChunk(chunks.Current()) {
			return accumulator.ChatCompletion, errors.New("the accumulator rejected a chunk")
		}
	}
	return accumulator.ChatCompletion, chunks.Err()
}

func checkSaid(chat openai.ChatCompletion) {
	proof.CheckSaid(chat.Choices[0].Message.Content, chat.Choices[0].FinishReason, int(chat.Usage.CompletionTokens))
}

func chats(model string) {
	words := openai.ChatCompletionNewParams{Model: model, Messages: user(proof.Words)}
	checkSaid(*proof.Must(client.Chat.Completions.New(ctx, words)))
	checkSaid(proof.Must(stream(words)))
	words.StreamOptions.IncludeUsage = openai.Bool(true)
	checkSaid(proof.Must(stream(words)))

	format := shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "place", Schema: proof.PlaceSchema, Strict: openai.Bool(true)}}
	place := openai.ChatCompletionNewParams{Model: model, Messages: user("Where?")}
	place.ResponseFormat.OfJSONSchema = &format
	proof.CheckPlace(proof.Must(client.Chat.Completions.New(ctx, place)).Choices[0].Message.Content)

	question := openai.ChatCompletionNewParams{Model: model, Messages: user(proof.Question), Tools: tools}
	called := proof.Must(stream(question)).Choices[0]
	proof.Check(called.FinishReason == "tool_calls", "the finish reason is %q", called.FinishReason)
	proof.Check(len(called.Message.ToolCalls) == 2, "%d calls", len(called.Message.ToolCalls))
	question.Messages = append(question.Messages, called.Message.ToParam())
	for _, call := range called.Message.ToolCalls {
		proof.CheckArguments(call.Function.Arguments)
		question.Messages = append(question.Messages, openai.ToolMessage(proof.ToolResult, call.ID))
	}
	proof.CheckAnswer(proof.Must(client.Chat.Completions.New(ctx, question)).Choices[0].Message.Content)
	proof.CheckAnswer(proof.Must(stream(question)).Choices[0].Message.Content)
}

func streamResponse(params responses.ResponseNewParams) *responses.Response {
	events := client.Responses.NewStreaming(ctx, params)
	defer events.Close()
	var text string
	var completed *responses.Response
	for events.Next() {
		event := events.Current()
		switch event.Type {
		case "response.output_text.delta":
			text += event.Delta
		case "response.completed":
			completed = &event.Response
		}
	}
	proof.Check(events.Err() == nil, "%v", events.Err())
	proof.Check(completed != nil, "the stream has no response.completed")
	proof.Check(completed.OutputText() == text, "the deltas are %q", text)
	return completed
}

func checkResponses(model string) {
	words := responses.ResponseNewParams{Model: model}
	words.Input.OfString = openai.String(proof.Words)
	for _, response := range []*responses.Response{
		proof.Must(client.Responses.New(ctx, words)), streamResponse(words)} {
		proof.Check(response.OutputText() == proof.Said, "the response is %q", response.OutputText())
		proof.Check(response.Usage.OutputTokens == 3, "%d tokens", response.Usage.OutputTokens)
	}

	function := responses.FunctionToolParam{Name: "forecast", Parameters: proof.Parameters, Strict: openai.Bool(true)}
	// With models that store nothing by default, a response is stored only on request.
	question := responses.ResponseNewParams{Model: model, Store: openai.Bool(true)}
	question.Tools = []responses.ToolUnionParam{{OfFunction: &function}}
	question.Input.OfString = openai.String(proof.Question)
	called := streamResponse(question)
	var results responses.ResponseInputParam
	for _, item := range called.Output {
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			proof.CheckArguments(call.Arguments)
			result := responses.ResponseInputItemParamOfFunctionCallOutput(proof.ToolResult)
			result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
			results = append(results, result)
		}
	}
	proof.Check(len(results) == 2, "%d calls", len(results))
	question.PreviousResponseID = openai.String(called.ID)
	question.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: results}
	proof.CheckAnswer(proof.Must(client.Responses.New(ctx, question)).OutputText())
}

func main() {
	for _, model := range proof.Models {
		chats(model)
		checkResponses(model)
	}
	embedding := openai.EmbeddingNewParams{Model: "openai/text-embedding-3-small"}
	embedding.Input.OfArrayOfStrings = []string{"one", "two"}
	for _, item := range proof.Must(client.Embeddings.New(ctx, embedding)).Data {
		proof.Check(len(item.Embedding) == 1536, "%d dimensions", len(item.Embedding))
	}
	proof.CheckInterruptedStreams(func(prompt string) error {
		_, err := stream(openai.ChatCompletionNewParams{Model: proof.Reasoning, Messages: user(prompt), Tools: tools})
		return err
	})
}
