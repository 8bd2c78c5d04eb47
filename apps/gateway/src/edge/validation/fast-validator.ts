/**
 * A quick look at class-validator's rules. For each object it puts together anew which rules there are, which takes longer
 * than all that a request is checked for beside; here they are put together once for each class. An object that keeps them
 * is let through; any other is for class-validator, which alone says what is wrong.
 */

import { getMetadataStorage, ValidationTypes } from 'class-validator';
import { type JsonObject } from '#kernel';

type Rule = (value: unknown, object: object) => boolean;

interface FieldRules {
  readonly name: string;
  /** When it is not checked at all. */
  readonly conditions: Rule[];
  readonly validationRules: Rule[];
}

/** Whether an object certainly keeps the rules of its class. */
export type FastValidator = (object: object) => boolean;

/** @returns undefined where the class has rules of a kind that is not known here */
export function createFastValidator(type: new () => object): FastValidator | undefined {
  const storage = getMetadataStorage();
  const fields = new Map<string, FieldRules>();
  for (const rule of storage.getTargetValidationMetadatas(type, '', false, false)) {
    const { propertyName: name, constraints } = rule;
    const field = fields.get(name) ?? { name, conditions: [], validationRules: [] };
    fields.set(name, field);
    if (rule.type === ValidationTypes.WHITELIST) continue;
    if (rule.type === ValidationTypes.CONDITIONAL_VALIDATION) {
      field.conditions.push((value, object) => constraints[0](object, value));
      continue;
    }
    const checks = storage.getTargetValidatorConstraints(rule.constraintCls);
    if (rule.type !== ValidationTypes.CUSTOM_VALIDATION || rule.validateIf || checks.length === 0) return undefined;
    for (const { instance } of checks) {
      // One for all objects: nothing looks at it after the rule has answered.
      const validationArguments = { targetName: type.name, property: name, constraints, object: {}, value: undefined };
      const isValid = (value: unknown) => instance.validate(value, validationArguments) === true;
      field.validationRules.push((value, object) => {
        Object.assign(validationArguments, { object, value });
        return rule.each && Array.isArray(value) ? value.every(isValid) : isValid(value);
      });
    }
  }
  const all = [...fields.values()];
  return (object) =>
    all.every(({ name, conditions, validationRules }) => {
      const value = (object as JsonObject)[name];
      return (
        conditions.some((applies) => !applies(value, object)) || validationRules.every((rule) => rule(value, object))
      );
    });
}
