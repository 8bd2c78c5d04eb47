/**
 * Describes fields of lookups for the OpenAPI document. Each lookup has its own fields, which are validated against its
 * entry in the catalogue.
 */
import { Field } from '../openapi/request-schema.ts';

/** A body with any fields. The catalogue entry of the lookup decides which of them are valid. */
export class LookUpFields {}

export class LookUpQuery {
  [parameter: string]: unknown;

  @Field({ type: 'string', description: 'For maps/place-details: the id of a place' }, false)
  placeId?: string;
}

export class SocialQuery {
  [parameter: string]: unknown;

  @Field({ type: 'string', description: 'For tweets/search: words that a post must all contain' }, false)
  words?: string;

  @Field({ type: 'string', description: 'For tweets/search: the author of the post' }, false)
  from?: string;

  @Field({ type: 'string', description: 'For tweets/user and users/by/username: the name of a user' }, false)
  username?: string;

  @Field({ type: 'string', description: 'For lookups by id: the id of a post, a user or a list' }, false)
  id?: string;

  @Field({ type: 'string', pattern: '^\\d+$', description: 'For lists: the maximum number of results' }, false)
  max_results?: string;

  @Field({ type: 'string', description: 'For lists: `next_token` of the previous page' }, false)
  pagination_token?: string;
}
