// OpenAI's client for Java: chats and Responses with their accumulators, tools, structured output, embeddings, images.
// With VALIDATION=true the client checks every response against its types, and throws if a field is missing.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.errors.OpenAIException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.helpers.ResponseAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionFunctionTool;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.embeddings.EmbeddingCreateParams;
import com.openai.models.images.ImageGenerateParams;
import com.openai.models.responses.FunctionTool;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseInputItem;
import com.openai.models.responses.ResponseOutputItem;
import java.util.List;
import java.util.Map;

public class OpenAiJava {
  static final List<String> MODELS =
      List.of("openai/gpt-5-mini", "anthropic/claude-haiku-4.5", "openai/gpt-oss-120b");
  static final String WORDS = "Hello [[sandbox tokens=3]]";
  static final String SAID = "every coin that";
  static final Map<String, Object> PARAMETERS =
      Map.of(
          "type", "object",
          "properties", Map.of("city", Map.of("type", "string", "enum", List.of("Ur"))),
          "required", List.of("city"),
          "additionalProperties", false);
  static final ChatCompletionFunctionTool TOOL = createTool();

  static final OpenAIClient client =
      OpenAIOkHttpClient.builder()
          .baseUrl(System.getenv("GATEWAY_URL") + "/v1")
          .apiKey(System.getenv("API_KEY"))
          .maxRetries(0)
          .responseValidation("true".equals(System.getenv("VALIDATION")))
          .build();

  public static class Place {
    public String city;
    public int days;
  }

  static void check(boolean holds, Object details) {
    if (!holds) throw new AssertionError(details);
  }

  static ChatCompletionFunctionTool createTool() {
    var parameters = FunctionParameters.builder();
    PARAMETERS.forEach((name, value) -> parameters.putAdditionalProperty(name, JsonValue.from(value)));
    var function = FunctionDefinition.builder().name("forecast").parameters(parameters.build()).strict(true).build();
    return ChatCompletionFunctionTool.builder().function(function).build();
  }

  static ChatCompletionCreateParams.Builder ask(String model, String prompt) {
    return ChatCompletionCreateParams.builder().model(model).addUserMessage(prompt);
  }

  static ChatCompletion stream(ChatCompletionCreateParams params) {
    var accumulator = ChatCompletionAccumulator.create();
    try (var response = client.chat().completions().createStreaming(params)) {
      response.stream().forEach(accumulator::accumulate);
    }
    return accumulator.chatCompletion();
  }

  static void checkText(ChatCompletion completion) {
    var choice = completion.choices().get(0);
    check(choice.message().content().get().equals(SAID), completion);
    check(choice.finishReason().asString().equals("stop"), completion);
  }

  static void chat(String model) {
    var params = ask(model, WORDS).build();
    var whole = client.chat().completions().create(params);
    checkText(whole);
    check(whole.usage().get().completionTokens() == 3, whole);
    checkText(stream(params));
    var options = ChatCompletionStreamOptions.builder().includeUsage(true).build();
    var withUsage = stream(ask(model, WORDS).streamOptions(options).build());
    checkText(withUsage);
    check(withUsage.usage().get().completionTokens() == 3, withUsage);

    for (var streams : List.of(false, true)) {
      var request = ask(model, "Weather? [[sandbox tools=2]]").addTool(TOOL);
      var called = complete(request.build(), streams).choices().get(0);
      check(called.finishReason().asString().equals("tool_calls"), called);
      var calls = called.message().toolCalls().get();
      check(calls.size() == 2, called);
      request.addMessage(called.message());
      for (ChatCompletionMessageToolCall call : calls) {
        check(call.asFunction().function().arguments().contains("Ur"), call);
        var id = call.asFunction().id();
        request.addMessage(
            ChatCompletionToolMessageParam.builder().toolCallId(id).content(System.getenv("TOOL_RESULT")).build());
      }
      var reply = complete(request.build(), streams);
      check(reply.choices().get(0).message().content().get().startsWith("every coin"), reply);
    }
    var structured = client.chat().completions().create(ask(model, "Where?").responseFormat(Place.class).build());
    check(structured.choices().get(0).message().content().get().city != null, structured);
  }

  static ChatCompletion complete(ChatCompletionCreateParams params, boolean streams) {
    return streams ? stream(params) : client.chat().completions().create(params);
  }

  static Response streamResponse(ResponseCreateParams params) {
    var accumulator = ResponseAccumulator.create();
    try (var response = client.responses().createStreaming(params)) {
      response.stream().forEach(accumulator::accumulate);
    }
    return accumulator.response();
  }

  static String textOf(Response response) {
    return response.output().stream()
        .filter(ResponseOutputItem::isMessage)
        .flatMap(item -> item.asMessage().content().stream())
        .map(content -> content.asOutputText().text())
        .reduce("", String::concat);
  }

  static void respond(String model) {
    var params = ResponseCreateParams.builder().model(model).input(WORDS).build();
    for (var response : List.of(client.responses().create(params), streamResponse(params))) {
      check(textOf(response).equals(SAID), response);
      check(response.usage().get().outputTokens() == 3, response);
    }
    var parameters = FunctionTool.Parameters.builder();
    PARAMETERS.forEach((name, value) -> parameters.putAdditionalProperty(name, JsonValue.from(value)));
    var tool = FunctionTool.builder().name("forecast").parameters(parameters.build()).strict(true).build();
    var request = ResponseCreateParams.builder().model(model).store(true).addTool(tool);
    var called = streamResponse(request.input("Weather? [[sandbox tool=any]]").build());
    var call = called.output().stream().filter(ResponseOutputItem::isFunctionCall).findFirst().get().asFunctionCall();
    var result =
        ResponseInputItem.FunctionCallOutput.builder()
            .callId(call.callId())
            .output(System.getenv("TOOL_RESULT"))
            .build();
    var input = List.of(ResponseInputItem.ofFunctionCallOutput(result));
    var reply = client.responses().create(request.previousResponseId(called.id()).inputOfResponse(input).build());
    check(textOf(reply).startsWith("every coin"), reply);
  }

  static void embed() {
    var params =
        EmbeddingCreateParams.builder()
            .model("openai/text-embedding-3-small")
            .inputOfArrayOfStrings(List.of("one", "two"))
            .build();
    for (var item : client.embeddings().create(params).data()) check(item.embedding().size() == 1536, "embeddings");
  }

  static void draw() {
    var request =
        ImageGenerateParams.builder()
            .model("openai/gpt-image-1-mini")
            .prompt("A coin")
            .size(ImageGenerateParams.Size._1024X1024)
            .quality(ImageGenerateParams.Quality.LOW);
    var whole = client.images().generate(request.build());
    check(!whole.data().get().get(0).b64Json().get().isEmpty(), "the image has no b64_json");
    check(whole.usage().get().outputTokens() > 0, "the image has no usage");
    try (var response = client.images().generateStreaming(request.partialImages(1).build())) {
      var events = response.stream().toList();
      var last = events.get(events.size() - 1).asGenerationCompleted();
      check(!last.b64Json().isEmpty() && last.usage().outputTokens() > 0, "the last event has no image or usage");
      check(last.size().asString().equals("1024x1024") && last.quality().asString().equals("low"), "size and quality");
      check(last.background() != null && last.outputFormat() != null, "background and format");
    }
  }

  static boolean raises(String prompt) {
    try {
      stream(ask("openai/gpt-oss-120b", prompt).addTool(TOOL).build());
      return false;
    } catch (OpenAIException error) {
      return true;
    }
  }

  public static void main(String[] args) throws Exception {
    for (var model : MODELS) {
      chat(model);
      respond(model);
    }
    embed();
    draw();
    var prompts = System.getenv().getOrDefault("INTERRUPTED_PROMPTS", "[]");
    var number = 0;
    for (var prompt : new ObjectMapper().readValue(prompts, String[].class))
      check(raises(prompt), "stream " + ++number + " ended without an error");
  }
}
