/** The schemas of the data files, from which those for editors are generated. */
import type { z } from 'zod';
import { dataEndpoints } from './data-endpoint-file.ts';
import { fees, models, parameterLists } from './data-files.ts';
import { ruleSets } from './model-rules.ts';
import { payments } from './payments-file.ts';
import { providers } from './provider-file.ts';
import { voices } from './voices-file.ts';

/** By the names of the files. All other files contain models. */
export const DATA_FILE_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  'data-endpoints.json': dataEndpoints,
  'fees.json': fees,
  'model-rules.json': ruleSets,
  'parameters.json': parameterLists,
  'payments.json': payments,
  'providers.json': providers,
  'voices.json': voices,
};

export const MODEL_FILE_SCHEMA: z.ZodType = models;
