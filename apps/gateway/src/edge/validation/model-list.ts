/** OpenRouter's list of models, of which a later one serves the request if the ones before it cannot. */
import { IsOptional, ValidateBy } from 'class-validator';
import { Field } from '../../openapi/request-schema.ts';
import { array, STRING } from '../../openapi/schemas.ts';

const MAX_MODELS = 10;

const requestTypes = new Set<object>();

/** Declares the field `models`. The field `model` of the class is then optional. */
export function IsModelList(): PropertyDecorator {
  return (prototype, field) => {
    requestTypes.add(prototype);
    Field({ description: 'The id of a model; optional if there are `models`' }, false)(prototype, 'model');
    Field({
      ...array({ ...STRING, minLength: 1 }),
      maxItems: MAX_MODELS,
      description:
        'The ids of models in order: each is called if those before it, and `model`, cannot serve the request',
    })(prototype, field);
    IsOptional()(prototype, field);
    const defaultMessage = () => `models must be an array of at most ${MAX_MODELS} ids of models`;
    ValidateBy({ name: 'isModelList', validator: { validate: isModelList, defaultMessage } })(prototype, field);
  };
}

/** Adds the first of the `models` as the `model` of a body that has none. Other bodies stay as they are. */
export function addFirstModel(body: unknown, type: new () => object): unknown {
  const { model, models } = (body ?? {}) as { readonly model?: unknown; readonly models?: unknown };
  if ((model ?? null) !== null || !Array.isArray(models) || !acceptsModelList(type)) return body;
  const [first] = models;
  return typeof first === 'string' ? { ...(body as object), model: first } : body;
}

function acceptsModelList({ prototype }: new () => object): boolean {
  for (let one = prototype; one !== null; one = Object.getPrototypeOf(one)) if (requestTypes.has(one)) return true;
  return false;
}

function isModelList(value: unknown): boolean {
  const isId = (item: unknown) => typeof item === 'string' && item !== '';
  return Array.isArray(value) && value.length <= MAX_MODELS && value.every(isId);
}
