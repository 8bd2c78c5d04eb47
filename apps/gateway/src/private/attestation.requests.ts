import { IsOptional, IsString } from 'class-validator';
import { Field } from '../openapi/request-schema.ts';

export class AttestationQuery {
  @Field({ description: 'The id of a private model; optional if there is only one' })
  @IsOptional()
  @IsString()
  model?: string;
}
