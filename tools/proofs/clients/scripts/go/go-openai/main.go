// sashabaranov's client: chats and Responses, complete and streaming, tools, structured output, embeddings.
package main

import (
	"context"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"

	"countinghouse/clients/proof"
)

var (
	ctx     = context.Background()
	client  = createClient()
	forecast = openai.FunctionDefinition{Name: "forecast", Parameters: proof.Parameters, Strict: true}
	tools   = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &forecast}}
)

func createClient() *openai.Client {
	config := openai.DefaultConfig(proof.APIKey)
	config.BaseURL = proof.BaseURL
	return openai.NewClientWithConfig(config)
}

func ask(model, text string) openai.ChatCompletionRequest {
	message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
	return openai.ChatCompletionRequest{Model: model, Messages: []openai.ChatCompletionMessage{message}}
}

type streamed struct {
	message      openai.ChatCompletionMessage
	finishReason openai.FinishReason
	usage        openai.Usage
}

// stream reads a stream to its end, and once more after an error, as a consumer may that ignores it.
func stream(request openai.ChatCompletionRequest) (streamed, error) {
	all := streamed{message: openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}}
	chunks, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return all, err
	}
	defer chunks.Close()
	for {
		chunk, err := chunks.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			_, _ = chunks.Recv()
			return all, err
		}
		if chunk.Usage != nil {
			all.usage = *chunk.Usage
		}
		for _, choice := range chunk.Choices {
			all.message.Content += choice.Delta.Content
			if choice.FinishReason != "" {
				all.finishReason = choice.FinishReason
			}
			for _, call := range choice.Delta.ToolCalls {
				if *call.Index == len(all.message.ToolCalls) {
					all.message.ToolCalls = append(all.message.ToolCalls, call)
				} else {
					all.message.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
				}
			}
		}
	}
}

func chats(model string) {
	words := ask(model, proof.Words)
	chat := proof.Must(client.CreateChatCompletion(ctx, words))
	choice := chat.Choices[0]
	proof.CheckSaid(choice.Message.Content, string(choice.FinishReason), chat.Usage.CompletionTokens)
	for _, options := range []*openai.StreamOptions{nil, {IncludeUsage: true}} {
		words.StreamOptions = options
		all := proof.Must(stream(words))
		proof.CheckSaid(all.message.Content, string(all.finishReason), all.usage.CompletionTokens)
	}

	place := ask(model, "Where?")
	place.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema}
	place.ResponseFormat.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{
		Name: "place", Schema: proof.Raw(proof.PlaceSchema), Strict: true}
	proof.CheckPlace(proof.Must(client.CreateChatCompletion(ctx, place)).Choices[0].Message.Content)

	question := ask(model, proof.Question)
	question.Tools = tools
	called := proof.Must(stream(question))
	proof.Check(called.finishReason == "tool_calls", "the finish reason is %q", called.finishReason)
	proof.Check(len(called.message.ToolCalls) == 2, "%d calls", len(called.message.ToolCalls))
	question.Messages = append(question.Messages, called.message)
	for _, call := range called.message.ToolCalls {
		proof.CheckArguments(call.Function.Arguments)
		question.Messages = append(question.Messages, openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleTool, Content: proof.ToolResult, ToolCallID: call.ID})
	}
	proof.CheckAnswer(proof.Must(client.CreateChatCompletion(ctx, question)).Choices[0].Message.Content)
}

func responses(model string) {
	request := openai.CreateResponseRequest{Model: model, Input: proof.Words}
	response := proof.Must(client.CreateResponse(ctx, request))
	proof.Check(response.GetOutputText() == proof.Said, "the response is %q", response.GetOutputText())
	request.Stream = true
	events := proof.Must(client.CreateResponseStream(ctx, request))
	defer events.Close()
	var text, last string
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		proof.Check(err == nil, "%v", err)
		if event.Type == "response.output_text.delta" {
			text += event.Delta
		}
		last = string(event.Type)
	}
	proof.Check(text == proof.Said && last == "response.completed", "the stream is %q and ends with %s", text, last)
}

func main() {
	for _, model := range proof.Models {
		chats(model)
		responses(model)
	}
	request := openai.EmbeddingRequest{Model: "openai/text-embedding-3-small", Input: []string{"one", "two"}}
	for _, item := range proof.Must(client.CreateEmbeddings(ctx, request)).Data {
		proof.Check(len(item.Embedding) == 1536, "%d dimensions", len(item.Embedding))
	}
	proof.CheckInterruptedStreams(func(prompt string) error {
		request := ask(proof.Reasoning, prompt)
		request.Tools = tools
		_, err := stream(request)
		return err
	})
}
