/**
 * Describes fields of lookups for the OpenAPI document. Each lookup has its own fields, which are validated against its
 * entry in the catalogue.
 */
import { Field } from '../openapi/request-schema.ts';

/** A body with any fields. The catalogue entry of the lookup decides which of them are valid. */
export class LookUpFields {}

export class LookUpQuery {
  [parameter: string]: unknown;

  @Field(
    { type: 'string', description: 'For maps/place-details/full and maps/place-details/partial: the id of a place' },
    false,
  )
  placeId?: string;
}

export class SocialQuery {
  [parameter: string]: unknown;

  @Field({ type: 'string', description: 'For tweets/search: words, all of which a post must contain' }, false)
  words?: string;

  @Field({ type: 'string', description: 'For tweets/search: the author of the post' }, false)
  from?: string;

  @Field(
    {
      type: 'string',
      description: 'For tweets/user, users/by/username, users/followers and users/following: the name of a user',
    },
    false,
  )
  username?: string;

  @Field({ type: 'string', description: 'The id of the post, user or list that the lookup is about' }, false)
  id?: string;

  @Field(
    {
      type: 'string',
      pattern: '^\\d+$',
      description: 'For lookups that return several results: the maximum number of results',
    },
    false,
  )
  max_results?: string;

  @Field(
    { type: 'string', description: 'For lookups that return several results: `next_token` of the previous page' },
    false,
  )
  pagination_token?: string;
}
