/** The type of a request, as the query history shows it. */
export type QueryType =
  | 'chat_completion'
  | 'completion'
  | 'response'
  | 'message'
  | 'embedding'
  | 'image_generation'
  | 'image_edit'
  | 'video_generation'
  | 'speech_to_text'
  | 'text_to_speech'
  | 'data_enrichment';

/** The description of a request in the query history. */
export interface Query {
  readonly model: string;
  readonly type: QueryType;
  /** The origin of the request, from its `x-query-source` header: `api` or `ui`. */
  readonly source: string;
  readonly online: boolean;
  readonly free: boolean;
}
