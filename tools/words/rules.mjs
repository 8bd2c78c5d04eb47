/** Which function names are no verb phrases, and which strings are messages. */

const ENDS_IN_PREPOSITION = /[a-z0-9](Of|In)$/;
const STANDARD = new Set(['indexOf', 'lastIndexOf', 'valueOf', 'signIn', 'logIn', 'optIn', 'instanceOf', 'typeOf']);
const VERBS_AND_NOUNS = new Set(
  'need feed seed embed speed exceed succeed proceed shed string ring ping bring spring swing missing during'.split(
    ' ',
  ),
);
const NO_VERBS = new Set(
  `written given taken known shown drawn held kept told said sold found lost made sent met begun broken chosen spoken gone seen
  heard understood meant left paid retold grown undone cut wrong whole plain fresh able right late busy sure equal own other same
  most least enough more few over under beside behind within soon once again here there nearest missing surely`.split(
    /\s+/,
  ),
);
const SQL =
  /^\s*(select|insert|update|delete|create|alter|drop|grant|with|begin|commit|set|explain|lock|truncate|listen|notify|,)\b|\bis (not )?null\b/i;

/** @returns what the name of a function should be instead; undefined for a good name */
export function checkFunctionName(name) {
  if (ENDS_IN_PREPOSITION.test(name) && !STANDARD.has(name)) return 'a name without Of or In: getX, parseX, findX, toX';
  return isBareParticiple(name) ? 'a verb phrase' : undefined;
}

/** Participles, adjectives and adverbs that are the complete name. */
function isBareParticiple(name) {
  if (!/^[a-z]+$/.test(name)) return false;
  return NO_VERBS.has(name) || (/(ed|ing)$/.test(name) && !VERBS_AND_NOUNS.has(name));
}

/** Whether a string is text for people: it has at least two words, and is no SQL. */
export function isMessage({ text, isRest, isHead, head }) {
  if (SQL.test(text) || (head !== undefined && SQL.test(head))) return false;
  return isRest ? /[A-Za-z]{2}/.test(text) : isHead || /[A-Za-z]\s+[A-Za-z]/.test(text);
}
