/** Where clients reach the API; known once it listens. */
export class PublicBaseUrl {
  url = '';
}
