// CloudWeGo's Eino with its OpenAI component: chats, complete and streaming with usage, its ReAct agent with a tool,
// structured output.
package main

import (
	"context"
	"errors"
	"io"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"countinghouse/clients/proof"
)

type input struct {
	City string `json:"city" jsonschema:"required,enum=Ur"`
}

var ctx = context.Background()

func createModel(name string) *openai.ChatModel {
	return proof.Must(openai.NewChatModel(ctx, &openai.ChatModelConfig{
		APIKey: proof.APIKey, BaseURL: proof.BaseURL, Model: name}))
}

func user(text string) []*schema.Message {
	return []*schema.Message{schema.UserMessage(text)}
}

// readAll reads a stream to its end, and once more after an error, as a consumer may that ignores it.
func readAll(chunks *schema.StreamReader[*schema.Message], err error) (*schema.Message, error) {
	if err != nil {
		return nil, err
	}
	defer chunks.Close()
	var all []*schema.Message
	for {
		chunk, err := chunks.Recv()
		if errors.Is(err, io.EOF) {
			return schema.ConcatMessages(all)
		} else if err != nil {
			_, _ = chunks.Recv()
			return nil, err
		}
		all = append(all, chunk)
	}
}

func checkSaid(message *schema.Message) {
	meta := message.ResponseMeta
	proof.CheckSaid(message.Content, meta.FinishReason, meta.Usage.CompletionTokens)
}

func chats(name string, forecast tool.BaseTool) {
	model := createModel(name)
	checkSaid(proof.Must(model.Generate(ctx, user(proof.Words))))
	checkSaid(proof.Must(readAll(model.Stream(ctx, user(proof.Words)))))

	agent := proof.Must(react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: model, ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{forecast}}}))
	proof.CheckAnswer(proof.Must(agent.Generate(ctx, user(proof.Question))).Content)
	proof.CheckAnswer(proof.Must(readAll(agent.Stream(ctx, user(proof.Question)))).Content)
}

func main() {
	calls := 0
	forecast := proof.Must(utils.InferTool("forecast", "Returns the forecast of a city",
		func(_ context.Context, in input) (string, error) {
			proof.Check(in.City == "Ur", "the city is %q", in.City)
			calls++
			return proof.ToolResult, nil
		}))
	for _, name := range proof.Models {
		chats(name, forecast)
	}
	proof.Check(calls == 8, "the tool ran %d times", calls)
	info := proof.Must(forecast.Info(ctx))
	model := proof.Must(createModel(proof.Reasoning).WithTools([]*schema.ToolInfo{info}))
	proof.CheckInterruptedStreams(func(prompt string) error {
		_, err := readAll(model.Stream(ctx, user(prompt)))
		return err
	})
}
