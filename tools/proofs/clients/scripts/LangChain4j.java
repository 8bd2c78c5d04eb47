// LangChain4j over chats and over Messages: complete, streaming with usage, its AI services with a tool and with
// structured output, embeddings.

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.agent.tool.ToolSpecifications;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.anthropic.AnthropicChatModel;
import dev.langchain4j.model.anthropic.AnthropicStreamingChatModel;
import dev.langchain4j.model.chat.Capability;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.StreamingChatModel;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiEmbeddingModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.output.FinishReason;
import dev.langchain4j.service.AiServices;
import dev.langchain4j.service.TokenStream;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

public class LangChain4j {
  static final String URL = System.getenv("GATEWAY_URL") + "/v1";
  static final String KEY = System.getenv("API_KEY");
  static final List<String> MODELS = List.of("openai/gpt-5-mini", "anthropic/claude-haiku-4.5");
  static final String REASONING_MODEL = "openai/gpt-oss-120b";
  static final String WORDS = "Hello [[sandbox tokens=3]]";
  static final String SAID = "every coin that";

  record Place(String city, int days) {}

  interface Assistant {
    String reply(String prompt);
  }

  interface StreamingAssistant {
    TokenStream reply(String prompt);
  }

  interface Extractor {
    Place extract(String prompt);
  }

  public static class Forecasts {
    @Tool("The forecast")
    public String forecast(@P("The city") String city) {
      return System.getenv("TOOL_RESULT");
    }
  }

  static void check(boolean holds, Object details) {
    if (!holds) throw new AssertionError(details);
  }

  static ChatModel overChats(String model) {
    return OpenAiChatModel.builder()
        .baseUrl(URL)
        .apiKey(KEY)
        .modelName(model)
        .maxRetries(0)
        .supportedCapabilities(Capability.RESPONSE_FORMAT_JSON_SCHEMA)
        .strictJsonSchema(true)
        .build();
  }

  static StreamingChatModel streamedOverChats(String model) {
    return OpenAiStreamingChatModel.builder().baseUrl(URL).apiKey(KEY).modelName(model).build();
  }

  static ChatModel overMessages(String model) {
    return AnthropicChatModel.builder()
        .baseUrl(URL)
        .apiKey(KEY)
        .modelName(model)
        .maxTokens(2000)
        .maxRetries(0)
        .supportedCapabilities(Capability.RESPONSE_FORMAT_JSON_SCHEMA)
        .build();
  }

  static StreamingChatModel streamedOverMessages(String model) {
    return AnthropicStreamingChatModel.builder().baseUrl(URL).apiKey(KEY).modelName(model).maxTokens(2000).build();
  }

  static ChatRequest ask(String prompt) {
    return ChatRequest.builder().messages(UserMessage.from(prompt)).build();
  }

  static ChatResponse stream(StreamingChatModel model, ChatRequest request) throws Exception {
    var ended = new CompletableFuture<ChatResponse>();
    model.chat(
        request,
        new StreamingChatResponseHandler() {
          @Override
          public void onCompleteResponse(ChatResponse response) {
            ended.complete(response);
          }

          @Override
          public void onError(Throwable error) {
            ended.completeExceptionally(error);
          }
        });
    return ended.get(60, TimeUnit.SECONDS);
  }

  static void checkWords(ChatResponse response) {
    check(response.aiMessage().text().equals(SAID), response);
    check(response.finishReason() == FinishReason.STOP, response);
    check(response.tokenUsage().inputTokenCount() > 0 && response.tokenUsage().outputTokenCount() == 3, response);
  }

  static void converse(ChatModel model, StreamingChatModel streaming) throws Exception {
    checkWords(model.chat(ask(WORDS)));
    checkWords(stream(streaming, ask(WORDS)));

    var prompt = "Weather? [[sandbox tool=forecast]]";
    var assistant = AiServices.builder(Assistant.class).chatModel(model).tools(new Forecasts()).build();
    check(assistant.reply(prompt).startsWith("every coin"), "the reply after a tool");
    var streamingAssistant =
        AiServices.builder(StreamingAssistant.class).streamingChatModel(streaming).tools(new Forecasts()).build();
    var ended = new CompletableFuture<ChatResponse>();
    streamingAssistant
        .reply(prompt)
        .onPartialResponse(text -> {})
        .onCompleteResponse(ended::complete)
        .onError(ended::completeExceptionally)
        .start();
    var streamed = ended.get(60, TimeUnit.SECONDS);
    check(streamed.aiMessage().text().startsWith("every coin"), streamed);

    var extractor = AiServices.builder(Extractor.class).chatModel(model).build();
    // Over Messages its schema requires no property, so the sandbox is told the text.
    var place = extractor.extract("Where? [[sandbox text=\"{\\\"city\\\":\\\"Ur\\\",\\\"days\\\":2}\"]]");
    check(place.equals(new Place("Ur", 2)), place);
  }

  static boolean raises(StreamingChatModel model, String prompt) throws Exception {
    var tools = ToolSpecifications.toolSpecificationsFrom(Forecasts.class);
    try {
      stream(model, ChatRequest.builder().messages(UserMessage.from(prompt)).toolSpecifications(tools).build());
      return false;
    } catch (ExecutionException error) {
      return true;
    }
  }

  public static void main(String[] args) throws Exception {
    for (var model : MODELS) {
      converse(overChats(model), streamedOverChats(model));
      converse(overMessages(model), streamedOverMessages(model));
    }
    var embeddings = OpenAiEmbeddingModel.builder().baseUrl(URL).apiKey(KEY).modelName("openai/text-embedding-3-small");
    check(embeddings.build().embed("one").content().dimension() == 1536, "embeddings");

    var number = 0;
    var prompts = System.getenv().getOrDefault("INTERRUPTED_PROMPTS", "[]");
    for (var prompt : new ObjectMapper().readValue(prompts, String[].class)) {
      number++;
      check(raises(streamedOverChats(REASONING_MODEL), prompt), "stream " + number + " ended without an error");
      var message = "stream " + number + " of Messages ended without an error";
      check(raises(streamedOverMessages(REASONING_MODEL), prompt), message);
    }
    System.exit(0);
  }
}
