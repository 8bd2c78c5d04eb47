/** The usual examples of the documentation of OpenAI, Anthropic and OpenRouter, each with its expected outcome. */
import type { Installable } from '../clients/install.ts';
import { ANTHROPIC_EXAMPLES } from './anthropic.ts';
import type { Example, Language } from './example.ts';
import { OPENAI_EXAMPLES } from './openai.ts';
import { OPENROUTER_EXAMPLES } from './openrouter.ts';

/** A script that runs the examples of a documentation with an SDK of one language. */
export interface ExampleProgram {
  readonly language: Language;
  readonly script: string;
  readonly sdk: Installable;
}

export interface Documentation {
  /** The provider whose documentation it is. */
  readonly name: string;
  readonly examples: readonly Example[];
  readonly programs: readonly ExampleProgram[];
}

export const DOCUMENTATIONS: readonly Documentation[] = [
  {
    name: 'OpenAI',
    examples: OPENAI_EXAMPLES,
    programs: [
      { language: 'Node', script: 'openai.mjs', sdk: { npm: { openai: '7.59.0', zod: '4.6.7' } } },
      { language: 'Python', script: 'openai_examples.py', sdk: { pypi: { openai: '3.57.0' } } },
    ],
  },
  {
    name: 'Anthropic',
    examples: ANTHROPIC_EXAMPLES,
    programs: [
      { language: 'Node', script: 'anthropic.mjs', sdk: { npm: { '@anthropic-ai/sdk': '1.14.0', zod: '4.6.7' } } },
      { language: 'Python', script: 'anthropic_examples.py', sdk: { pypi: { anthropic: '2.14.0' } } },
    ],
  },
  {
    name: 'OpenRouter',
    examples: OPENROUTER_EXAMPLES,
    programs: [
      { language: 'Node', script: 'openrouter.mjs', sdk: { npm: { '@openrouter/sdk': '1.3.19' } } },
      { language: 'Python', script: 'openrouter_examples.py', sdk: { pypi: { openrouter: '1.3.84' } } },
    ],
  },
];
