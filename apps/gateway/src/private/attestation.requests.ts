import { IsOptional, IsString } from 'class-validator';
import { Field } from '../openapi/request-schema.ts';

export class AttestationQuery {
  @Field({ description: 'The id of a private model; it may be left out where there is one' })
  @IsOptional()
  @IsString()
  model?: string;
}
