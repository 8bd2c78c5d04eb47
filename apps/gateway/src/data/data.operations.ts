import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { LookUpFields, LookUpQuery, SocialQuery } from './data.requests.ts';
import { DataEndpointList, LOOKUP_PENDING, LOOKUP_RESULT } from './data.schemas.ts';

const ERRORS = [402, 404, 405, 409, 422, 429, 502, 504];
const CHARGED =
  'A call costs the price that `GET /v1/data/endpoints` lists; `x-cost-usd` has the charged amount. The response of the provider is returned unchanged. Errors of the provider with status 400, 404 and 422 are returned with the same status. A failed call is charged only if its provider charges for it.';
/** Maximum size of a body; a larger one is rejected with 413. */
const MAX_BYTES = 1024 * 1024;

const params = (provider: string, action: string) => ({
  provider: { description: 'The category of the lookup', example: provider },
  action: { description: 'The name of the lookup; it may contain slashes', example: action },
});

export const listDataEndpoints: OperationOptions = {
  id: 'listDataEndpoints',
  tag: 'Data',
  summary: 'Lists the data lookups with their current prices',
  auth: 'public',
  cacheable: true,
  response: jsonContent(DataEndpointList),
};

export const runLookup: OperationOptions = {
  id: 'lookUp',
  tag: 'Data',
  summary: 'Runs a data lookup',
  description: `The fields of the body are forwarded to the provider as they are. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  maxBytes: MAX_BYTES,
  params: params('web', 'contents'),
  body: LookUpFields,
  example: { urls: ['https://example.com'], text: true },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};

export const runLookupByQuery: OperationOptions = {
  id: 'lookUpByQuery',
  tag: 'Data',
  summary: 'Runs a data lookup with query parameters',
  description: `The query parameters are forwarded to the provider as they are. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  params: params('maps', 'place-details/partial'),
  query: LookUpQuery,
  example: { placeId: 'ChIJexampleexampleexample' },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};

export const runSocialLookup: OperationOptions = {
  id: 'lookUpSocial',
  tag: 'Data',
  summary: 'Runs a data lookup in a social network',
  description: `Finds posts, users and lists of X. The query parameters are forwarded to the provider as they are. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  params: { action: { description: 'The name of the lookup; it may contain slashes', example: 'users/by/username' } },
  query: SocialQuery,
  example: { username: 'ada_example' },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};
