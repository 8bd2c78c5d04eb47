// Genkit for Go with its plugin for APIs that are compatible with OpenAI's: chats, complete and streaming, a tool that
// Genkit runs, embeddings.
package main

import (
	"context"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"
	"github.com/openai/openai-go/option"

	"countinghouse/clients/proof"
)

const provider = "gateway"

type input struct {
	City string `json:"city" jsonschema:"enum=Ur"`
}

var ctx = context.Background()

func main() {
	plugin := &compat_oai.OpenAICompatible{
		Provider: provider, APIKey: proof.APIKey, BaseURL: proof.BaseURL,
		Opts: []option.RequestOption{option.WithMaxRetries(0)}}
	app := genkit.Init(ctx, genkit.WithPlugins(plugin))
	calls := 0
	forecast := genkit.DefineTool(app, "forecast", "Returns the forecast of a city",
		func(_ *ai.ToolContext, in input) (string, error) {
			proof.Check(in.City == "Ur", "the city is %q", in.City)
			calls++
			return proof.ToolResult, nil
		})

	for _, name := range proof.Models {
		model := ai.WithModelName(provider + "/" + name)
		var text string
		streaming := ai.WithStreaming(func(_ context.Context, chunk *ai.ModelResponseChunk) error {
			text += chunk.Text()
			return nil
		})
		words := ai.WithPrompt(proof.Words)
		checkSaid(proof.Must(genkit.Generate(ctx, app, model, words)))
		checkSaid(proof.Must(genkit.Generate(ctx, app, model, words, streaming)))
		proof.Check(text == proof.Said, "the chunks are %q", text)
		question := ai.WithPrompt(proof.Question)
		proof.CheckAnswer(proof.Must(genkit.Generate(ctx, app, model, question, ai.WithTools(forecast))).Text())
		proof.CheckAnswer(proof.Must(genkit.Generate(ctx, app, model, question, ai.WithTools(forecast), streaming)).Text())
	}
	proof.Check(calls == 8, "the tool ran %d times", calls)

	embedder := plugin.DefineEmbedder(provider, "openai/text-embedding-3-small", nil)
	request := &ai.EmbedRequest{Input: []*ai.Document{ai.DocumentFromText("one", nil), ai.DocumentFromText("two", nil)}}
	for _, item := range proof.Must(embedder.Embed(ctx, request)).Embeddings {
		proof.Check(len(item.Embedding) == 1536, "%d dimensions", len(item.Embedding))
	}

	proof.CheckInterruptedStreams(func(prompt string) error {
		ignore := func(context.Context, *ai.ModelResponseChunk) error { return nil }
		_, err := genkit.Generate(ctx, app, ai.WithModelName(provider+"/"+proof.Reasoning), ai.WithPrompt(prompt),
			ai.WithTools(forecast), ai.WithStreaming(ignore))
		return err
	})
}

func checkSaid(response *ai.ModelResponse) {
	proof.CheckSaid(response.Text(), string(response.FinishReason), response.Usage.OutputTokens)
}
