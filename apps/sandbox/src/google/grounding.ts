/** The searches of Google and their sources: https://ai.google.dev/gemini-api/docs/google-search */
import type { SandboxModelOutput } from '../provider/model-output.ts';

/** Tokens of the text that each search finds. The model reads it, but it is not billed as input. */
const TOKENS_PER_SEARCH = 200;

/**
 * Returns the field of a candidate that has searched, else no field. As in Google's responses, the list of the queries
 * also has empty and repeated ones, which are not billed. A failed search is not listed.
 */
export function createGroundingField({ searches, text, visible }: SandboxModelOutput) {
  const queries = searches.flatMap(({ query, failed }) => (failed ? [] : [query]));
  if (queries.length === 0) return {};
  // A start of 0 is left out.
  const segment = { endIndex: Buffer.byteLength(text), text };
  return {
    groundingMetadata: {
      webSearchQueries: ['', ...queries, ...queries.slice(0, 1)],
      searchEntryPoint: { renderedContent: '<div>Search suggestions</div>' },
      groundingChunks: queries.map((_, at) => ({ web: { uri: `https://site1.example/${at + 1}`, title: 'Page 1' } })),
      groundingSupports: visible > 0 ? queries.map((_, at) => ({ segment, groundingChunkIndices: [at] })) : [],
    },
  };
}

export function countToolTokens({ searches }: SandboxModelOutput): number {
  return TOKENS_PER_SEARCH * searches.length;
}
