// Anthropic's client for Java with models of Anthropic and another provider: streams with its accumulator, tools, web
// searches, token counting, the list of models. With VALIDATION=true the client checks every response against its types.

import com.anthropic.client.AnthropicClient;
import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.core.JsonValue;
import com.anthropic.errors.AnthropicException;
import com.anthropic.errors.AnthropicInvalidDataException;
import com.anthropic.helpers.MessageAccumulator;
import com.anthropic.models.messages.ContentBlock;
import com.anthropic.models.messages.ContentBlockParam;
import com.anthropic.models.messages.Message;
import com.anthropic.models.messages.MessageCountTokensParams;
import com.anthropic.models.messages.MessageCreateParams;
import com.anthropic.models.messages.Tool;
import com.anthropic.models.messages.ToolResultBlockParam;
import com.anthropic.models.messages.WebSearchTool20250305;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;

public class AnthropicJava {
  static final List<String> MODELS = List.of("anthropic/claude-haiku-4.5", "openai/gpt-5-mini");
  static final String WORDS = "Hello [[sandbox tokens=3]]";
  static final String SAID = "every coin that";
  static final Tool TOOL = createTool();
  static final boolean VALIDATES = "true".equals(System.getenv("VALIDATION"));

  static final AnthropicClient client =
      AnthropicOkHttpClient.builder()
          .baseUrl(System.getenv("GATEWAY_URL"))
          .apiKey(System.getenv("API_KEY"))
          .maxRetries(0)
          .responseValidation(VALIDATES)
          .build();

  static void check(boolean holds, Object details) {
    if (!holds) throw new AssertionError(details);
  }

  static Tool createTool() {
    var city = JsonValue.from(Map.of("type", "string", "enum", List.of("Ur")));
    var properties = Tool.InputSchema.Properties.builder().putAdditionalProperty("city", city).build();
    var schema = Tool.InputSchema.builder().properties(properties).addRequired("city").build();
    return Tool.builder().name("forecast").description("The forecast").inputSchema(schema).build();
  }

  static MessageCreateParams.Builder ask(String model, String prompt) {
    return MessageCreateParams.builder().model(model).maxTokens(2000).addUserMessage(prompt);
  }

  static Message stream(MessageCreateParams params) {
    var accumulator = MessageAccumulator.create();
    try (var response = client.messages().createStreaming(params)) {
      response.stream().forEach(accumulator::accumulate);
    }
    return accumulator.message();
  }

  static Message complete(MessageCreateParams params, boolean streams) {
    return streams ? stream(params) : client.messages().create(params);
  }

  static String textOf(Message message) {
    return message.content().stream()
        .filter(ContentBlock::isText)
        .map(block -> block.asText().text())
        .reduce("", String::concat);
  }

  static void converse(String model, boolean streams) {
    var message = complete(ask(model, WORDS).build(), streams);
    check(textOf(message).equals(SAID), message);
    check(message.stopReason().get().asString().equals("end_turn"), message);
    check(message.usage().outputTokens() == 3 && message.usage().inputTokens() > 0, message);

    var request = ask(model, "Weather? [[sandbox tools=2]]").addTool(TOOL);
    var called = complete(request.build(), streams);
    check(called.stopReason().get().asString().equals("tool_use"), called);
    var results =
        called.content().stream()
            .filter(ContentBlock::isToolUse)
            .map(ContentBlock::asToolUse)
            .peek(call -> check(call._input().toString().contains("Ur"), call))
            .map(call -> ToolResultBlockParam.builder().toolUseId(call.id()).content(System.getenv("TOOL_RESULT")))
            .map(result -> ContentBlockParam.ofToolResult(result.build()))
            .toList();
    check(results.size() == 2, called);
    request.addMessage(called).addUserMessageOfContentBlockParams(results);
    check(textOf(complete(request.build(), streams)).startsWith("every coin"), "the reply to the results");
  }

  static void search(String model, boolean streams) {
    var tool = WebSearchTool20250305.builder().maxUses(1).build();
    var found = complete(ask(model, "News? [[sandbox tool=web_search tool_times=1 text=Yes]]").addTool(tool).build(), streams);
    check(textOf(found).equals("Yes"), found);
    check(found.content().stream().anyMatch(ContentBlock::isWebSearchToolResult), found);
    var cites = found.content().stream().anyMatch(block -> block.isText() && block.asText().citations().isPresent());
    check(cites, found);
  }

  /** Its validation rejects the name of every tool that a provider runs, with "'name' is invalid, received web_search". */
  static void searchWithValidation(String model) {
    try {
      search(model, false);
    } catch (AnthropicInvalidDataException error) {
      check(error.getMessage().contains("received web_search"), error);
      return;
    }
    throw new AssertionError("validation accepts web searches now: remove this exception");
  }

  static boolean raises(String prompt) {
    try {
      stream(ask("openai/gpt-oss-120b", prompt).addTool(TOOL).build());
      return false;
    } catch (AnthropicException error) {
      return true;
    }
  }

  public static void main(String[] args) throws Exception {
    for (var streams : List.of(false, true)) {
      for (var model : MODELS) converse(model, streams);
      if (!VALIDATES) search(MODELS.get(0), streams);
    }
    if (VALIDATES) searchWithValidation(MODELS.get(0));
    for (var model : MODELS) {
      var params = MessageCountTokensParams.builder().model(model).addUserMessage(WORDS).build();
      check(client.messages().countTokens(params).inputTokens() > 0, "the count of tokens");
    }
    check(client.models().list().items().stream().allMatch(model -> !model.displayName().isEmpty()), "models");
    var prompts = System.getenv().getOrDefault("INTERRUPTED_PROMPTS", "[]");
    var number = 0;
    for (var prompt : new ObjectMapper().readValue(prompts, String[].class))
      check(raises(prompt), "stream " + ++number + " ended without an error");
  }
}
