/** What the document says of the fields of lookups: each lookup has its own, which its entry in the catalogue checks. */
import { Field } from '../openapi/request-schema.ts';

/** Passed on as they are. */
export class LookUpFields {}

export class LookUpQuery {
  [parameter: string]: unknown;

  @Field({ type: 'string', description: 'Of maps/place-details: the id of a place' }, false)
  placeId?: string;
}

export class SocialQuery {
  [parameter: string]: unknown;

  @Field({ type: 'string', description: 'Of tweets/search: words that must all be there' }, false)
  words?: string;

  @Field({ type: 'string', description: 'Of tweets/search: who has written it' }, false)
  from?: string;

  @Field({ type: 'string', description: 'Of tweets/user and users/by/username: a user’s name' }, false)
  username?: string;

  @Field({ type: 'string', description: 'Of lookups by id: the id of a post, a user or a list' }, false)
  id?: string;

  @Field({ type: 'string', pattern: '^\\d+$', description: 'Of lists: how many at most' }, false)
  max_results?: string;

  @Field({ type: 'string', description: 'Of lists: `next_token` of the page before' }, false)
  pagination_token?: string;
}
