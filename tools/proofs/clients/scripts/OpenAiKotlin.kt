// openai-kotlin: chats, complete and streaming, tools, embeddings.

import com.aallam.openai.api.chat.ChatCompletionRequest
import com.aallam.openai.api.chat.ChatMessage
import com.aallam.openai.api.chat.ChatRole
import com.aallam.openai.api.chat.Tool
import com.aallam.openai.api.chat.ToolCall
import com.aallam.openai.api.core.FinishReason
import com.aallam.openai.api.core.Parameters
import com.aallam.openai.api.embedding.EmbeddingRequest
import com.aallam.openai.api.logging.LogLevel
import com.aallam.openai.api.model.ModelId
import com.aallam.openai.client.LoggingConfig
import com.aallam.openai.client.OpenAI
import com.aallam.openai.client.OpenAIHost
import com.aallam.openai.client.RetryStrategy
import kotlin.system.exitProcess
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.add
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonArray
import kotlinx.serialization.json.putJsonObject

val MODELS = listOf("openai/gpt-5-mini", "anthropic/claude-haiku-4.5", "openai/gpt-oss-120b")
const val WORDS = "Hello [[sandbox tokens=3]]"
const val SAID = "every coin that"

val client =
    OpenAI(
        token = System.getenv("API_KEY"),
        host = OpenAIHost(baseUrl = System.getenv("GATEWAY_URL") + "/v1/"),
        retry = RetryStrategy(maxRetries = 0),
        logging = LoggingConfig(logLevel = LogLevel.None),
    )

val forecast =
    Tool.function(
        name = "forecast",
        description = "The forecast",
        parameters =
            Parameters.buildJsonObject {
                put("type", "object")
                putJsonObject("properties") {
                    putJsonObject("city") {
                        put("type", "string")
                        putJsonArray("enum") { add("Ur") }
                    }
                }
                putJsonArray("required") { add("city") }
            },
    )

fun ask(model: String, messages: List<ChatMessage>, tools: List<Tool>? = null) =
    ChatCompletionRequest(model = ModelId(model), messages = messages, tools = tools)

fun user(content: String) = listOf(ChatMessage(role = ChatRole.User, content = content))

suspend fun converse(model: String) {
    val whole = client.chatCompletion(ask(model, user(WORDS)))
    check(whole.choices[0].message.content == SAID) { whole }
    check(whole.choices[0].finishReason == FinishReason.Stop) { whole }
    check(whole.usage?.completionTokens == 3) { whole }

    val chunks = client.chatCompletions(ask(model, user(WORDS))).toList()
    val choices = chunks.flatMap { it.choices }
    check(choices.joinToString("") { it.delta?.content ?: "" } == SAID) { chunks }
    check(choices.any { it.finishReason == FinishReason.Stop }) { chunks }
    check(chunks.last().usage?.completionTokens == 3) { chunks }

    val question = user("Weather? [[sandbox tools=2]]")
    val called = client.chatCompletion(ask(model, question, listOf(forecast))).choices[0].message
    val results =
        called.toolCalls.orEmpty().map { call ->
            call as ToolCall.Function
            check(call.function.arguments.contains("Ur")) { call }
            ChatMessage(role = ChatRole.Tool, toolCallId = call.id, content = System.getenv("TOOL_RESULT"))
        }
    check(results.size == 2) { called }
    val reply = client.chatCompletion(ask(model, question + called + results, listOf(forecast)))
    check(reply.choices[0].message.content.orEmpty().startsWith("every coin")) { reply }
}

suspend fun raises(prompt: String): Boolean {
    val request = ask("openai/gpt-oss-120b", user(prompt), listOf(forecast))
    return runCatching { client.chatCompletions(request).collect {} }.isFailure
}

fun main() {
    runBlocking {
        MODELS.forEach { converse(it) }
        val request = EmbeddingRequest(model = ModelId("openai/text-embedding-3-small"), input = listOf("one", "two"))
        check(client.embeddings(request).embeddings.all { it.embedding.size == 1536 }) { "embeddings" }
        val prompts = Json.parseToJsonElement(System.getenv("INTERRUPTED_PROMPTS") ?: "[]").jsonArray
        prompts.forEachIndexed { index, prompt ->
            check(raises(prompt.jsonPrimitive.content)) { "stream ${index + 1} ended without an error" }
        }
    }
    exitProcess(0)
}
