// Spring AI over chats and over Messages: complete, streaming with usage, a tool that it runs, structured output,
// embeddings.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import org.springframework.ai.anthropic.AnthropicChatModel;
import org.springframework.ai.anthropic.AnthropicChatOptions;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.document.MetadataMode;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import org.springframework.ai.openai.OpenAiEmbeddingModel;
import org.springframework.ai.openai.OpenAiEmbeddingOptions;
import org.springframework.ai.tool.annotation.Tool;

public class SpringAi {
  static final String URL = System.getenv("GATEWAY_URL");
  static final String KEY = System.getenv("API_KEY");
  static final List<String> MODELS = List.of("openai/gpt-5-mini", "anthropic/claude-haiku-4.5");
  static final String REASONING_MODEL = "openai/gpt-oss-120b";
  static final String WORDS = "Hello [[sandbox tokens=3]]";
  static final String SAID = "every coin that";

  record Place(String city, int days) {}

  public static class Forecasts {
    @Tool(name = "forecast", description = "The forecast")
    public String forecast(String city) {
      return System.getenv("TOOL_RESULT");
    }
  }

  static void check(boolean holds, Object details) {
    if (!holds) throw new AssertionError(details);
  }

  static ChatModel overChats(String model) {
    var options =
        OpenAiChatOptions.builder().baseUrl(URL + "/v1").apiKey(KEY).model(model).maxRetries(0).streamUsage(true);
    return OpenAiChatModel.builder().options(options.build()).build();
  }

  static ChatModel overMessages(String model) {
    var options = AnthropicChatOptions.builder().baseUrl(URL).apiKey(KEY).model(model).maxRetries(0).maxTokens(2000);
    return AnthropicChatModel.builder().options(options.build()).build();
  }

  static String textOf(ChatResponse response) {
    var result = response.getResult();
    return result == null || result.getOutput().getText() == null ? "" : result.getOutput().getText();
  }

  static void converse(ChatModel model) {
    var client = ChatClient.create(model);
    var whole = client.prompt(WORDS).call().chatResponse();
    check(textOf(whole).equals(SAID), whole);
    check(whole.getMetadata().getUsage().getCompletionTokens() == 3, whole);
    var responses = client.prompt(WORDS).stream().chatResponse().collectList().block();
    check(responses.stream().map(SpringAi::textOf).reduce("", String::concat).equals(SAID), responses);
    var usages = responses.stream().map(response -> response.getMetadata().getUsage()).toList();
    check(usages.stream().anyMatch(usage -> usage.getCompletionTokens() == 3), responses);
    check(usages.stream().anyMatch(usage -> usage.getPromptTokens() > 0), responses);

    var prompt = "Weather? [[sandbox tool=forecast]]";
    var called = client.prompt(prompt).tools(new Forecasts()).call().content();
    check(called.startsWith("every coin"), called);
    var parts = client.prompt(prompt).tools(new Forecasts()).stream().content().collectList().block();
    check(String.join("", parts).startsWith("every coin"), parts);
  }

  static boolean raises(ChatModel model, String prompt) {
    try {
      ChatClient.create(model).prompt(prompt).tools(new Forecasts()).stream().chatResponse().blockLast();
      return false;
    } catch (RuntimeException error) {
      return true;
    }
  }

  public static void main(String[] args) throws Exception {
    for (var model : MODELS) {
      converse(overChats(model));
      converse(overMessages(model));
      var place = ChatClient.create(overChats(model)).prompt("[[sandbox text=\"{\\\"city\\\":\\\"Ur\\\",\\\"days\\\":2}\"]]");
      check(place.call().entity(Place.class).city().equals("Ur"), "structured output");
    }
    var options =
        OpenAiEmbeddingOptions.builder().baseUrl(URL + "/v1").apiKey(KEY).model("openai/text-embedding-3-small");
    var embeddings = OpenAiEmbeddingModel.builder().options(options.build()).metadataMode(MetadataMode.EMBED).build();
    check(embeddings.embed("one").length == 1536, "embeddings");

    var number = 0;
    var prompts = System.getenv().getOrDefault("INTERRUPTED_PROMPTS", "[]");
    for (var prompt : new ObjectMapper().readValue(prompts, String[].class)) {
      number++;
      check(raises(overChats(REASONING_MODEL), prompt), "stream " + number + " ended without an error");
      var message = "stream " + number + " of Messages ended without an error";
      check(raises(overMessages(REASONING_MODEL), prompt), message);
    }
    System.exit(0);
  }
}
