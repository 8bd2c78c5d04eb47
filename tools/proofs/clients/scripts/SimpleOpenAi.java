// simple-openai: chats, complete and streaming, a tool that it runs, embeddings.

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.sashirestela.cleverclient.retry.RetryConfig;
import io.github.sashirestela.openai.SimpleOpenAI;
import io.github.sashirestela.openai.common.StreamOptions;
import io.github.sashirestela.openai.common.function.FunctionDef;
import io.github.sashirestela.openai.common.function.FunctionExecutor;
import io.github.sashirestela.openai.common.function.Functional;
import io.github.sashirestela.openai.domain.chat.Chat;
import io.github.sashirestela.openai.domain.chat.ChatMessage.ToolMessage;
import io.github.sashirestela.openai.domain.chat.ChatMessage.UserMessage;
import io.github.sashirestela.openai.domain.chat.ChatRequest;
import io.github.sashirestela.openai.domain.embedding.EmbeddingRequest;
import java.util.List;

public class SimpleOpenAi {
  static final List<String> MODELS =
      List.of("openai/gpt-5-mini", "anthropic/claude-haiku-4.5", "openai/gpt-oss-120b");
  static final String WORDS = "Hello [[sandbox tokens=3]]";
  static final String SAID = "every coin that";

  static final SimpleOpenAI client =
      SimpleOpenAI.builder()
          .baseUrl(System.getenv("GATEWAY_URL"))
          .apiKey(System.getenv("API_KEY"))
          .retryConfig(RetryConfig.builder().maxAttempts(1).build())
          .build();

  public static class Forecast implements Functional {
    @JsonProperty(required = true)
    public String city;

    @Override
    public Object execute() {
      return System.getenv("TOOL_RESULT");
    }
  }

  static final FunctionExecutor executor =
      new FunctionExecutor(
          List.of(
              FunctionDef.builder()
                  .name("forecast")
                  .description("The forecast")
                  .functionalClass(Forecast.class)
                  .strict(true)
                  .build()));

  static void check(boolean holds, Object details) {
    if (!holds) throw new AssertionError(details);
  }

  static ChatRequest.ChatRequestBuilder ask(String model, String prompt) {
    return ChatRequest.builder().model(model).message(UserMessage.of(prompt));
  }

  static List<Chat> stream(ChatRequest request) {
    return client.chatCompletions().createStream(request).join().toList();
  }

  static void converse(String model) {
    var whole = client.chatCompletions().create(ask(model, WORDS).build()).join();
    check(whole.firstContent().equals(SAID), whole);
    check(whole.getChoices().get(0).getFinishReason().equals("stop"), whole);
    check(whole.getUsage().getCompletionTokens() == 3, whole);

    var chunks = stream(ask(model, WORDS).streamOptions(StreamOptions.of(true)).build());
    var choices = chunks.stream().flatMap(chunk -> chunk.getChoices().stream()).toList();
    var text = new StringBuilder();
    for (var choice : choices) {
      var part = choice.getMessage().getContent();
      if (part != null) text.append(part);
    }
    check(text.toString().equals(SAID), chunks);
    check(choices.stream().anyMatch(choice -> "stop".equals(choice.getFinishReason())), chunks);
    check(chunks.get(chunks.size() - 1).getUsage().getCompletionTokens() == 3, chunks);

    var request = ask(model, "Weather? [[sandbox tool=forecast]]").tools(executor.getToolFunctions());
    var message = client.chatCompletions().create(request.build()).join().firstMessage();
    var call = message.getToolCalls().get(0);
    String result = executor.execute(call.getFunction());
    request.message(message).message(ToolMessage.of(result, call.getId()));
    var reply = client.chatCompletions().create(request.build()).join();
    check(reply.firstContent().startsWith("every coin"), reply);
  }

  static boolean raises(String prompt) {
    try {
      stream(ask("openai/gpt-oss-120b", prompt).tools(executor.getToolFunctions()).build());
      return false;
    } catch (RuntimeException error) {
      return true;
    }
  }

  public static void main(String[] args) throws Exception {
    for (var model : MODELS) converse(model);
    var params = EmbeddingRequest.builder().model("openai/text-embedding-3-small").input(List.of("one", "two"));
    for (var item : client.embeddings().create(params.build()).join().getData())
      check(item.getEmbedding().size() == 1536, "embeddings");
    var number = 0;
    var prompts = System.getenv().getOrDefault("INTERRUPTED_PROMPTS", "[]");
    for (var prompt : new ObjectMapper().readValue(prompts, String[].class))
      check(raises(prompt), "stream " + ++number + " ended without an error");
    System.exit(0);
  }
}
