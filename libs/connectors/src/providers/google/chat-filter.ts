/**
 * The fields that are sent to Gemini's chat models (https://ai.google.dev/api/generate-content). Fields that change the
 * price are not listed: `cachedContent`, `serviceTier`, and all tools that Google runs, except its search without
 * options.
 */
import { allowAny, allowEach, allowFields } from '../../http/field-filter.ts';

const inlineData = allowFields({ mimeType: allowAny, data: allowAny });
const fileData = allowFields({ mimeType: allowAny, fileUri: allowAny });

const part = allowFields({
  text: allowAny,
  inlineData,
  fileData,
  functionCall: allowFields({ id: allowAny, name: allowAny, args: allowAny }),
  functionResponse: allowFields({
    id: allowAny,
    name: allowAny,
    response: allowAny,
    parts: allowEach(allowFields({ inlineData, fileData })),
  }),
  thoughtSignature: allowAny,
});

const content = allowFields({ role: allowAny, parts: allowEach(part) });

export const generateContentFilter = allowFields({
  contents: allowEach(content),
  systemInstruction: content,
  tools: allowEach(
    allowFields({
      functionDeclarations: allowEach(
        allowFields({ name: allowAny, description: allowAny, parametersJsonSchema: allowAny }),
      ),
      googleSearch: allowFields({}),
    }),
  ),
  toolConfig: allowFields({
    functionCallingConfig: allowFields({ mode: allowAny, allowedFunctionNames: allowAny }),
  }),
  generationConfig: allowFields({
    maxOutputTokens: allowAny,
    temperature: allowAny,
    topP: allowAny,
    topK: allowAny,
    seed: allowAny,
    stopSequences: allowAny,
    responseMimeType: allowAny,
    responseJsonSchema: allowAny,
    thinkingConfig: allowFields({ includeThoughts: allowAny, thinkingLevel: allowAny }),
  }),
});
