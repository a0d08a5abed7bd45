/** An error in the form sent between processes. */
export interface SerializedError {
  class: string;
  message: string;
  fields: Record<string, unknown>;
}

type ErrorClass = new (...args: never[]) => Error;

const classes = new Map<string, { errorClass: ErrorClass; fields: readonly string[] }>();

/** Messages can contain output of a program. A longer one is cut, so that a failure fits its frame when escaped. */
const MESSAGE_CHARS_MAX = 16_000;

/**
 * The other process might have run the request: its response was cut off, or its failure is of a class that this
 * version does not know. A caller must not repeat the request.
 */
export class OutcomeUnknownError extends Error {
  constructor(
    message = 'The process that answers this request ended, or did not answer in time: whether the request was carried out is unknown.',
  ) {
    super(message);
  }
}

/**
 * Marks a class whose errors arrive unchanged in another process. Every class needs its own decorator; a subclass without it
 * arrives as an {@link OutcomeUnknownError}.
 *
 * The receiver constructs the error without arguments, then assigns the message and the fields.
 *
 * @param fields properties to send, besides the message: JSON values
 */
export function Serializable<const Fields extends readonly string[]>(...fields: Fields) {
  return (errorClass: new (...args: never[]) => Error & Record<Fields[number], unknown>): void => {
    classes.set(errorClass.name, { errorClass, fields });
  };
}

export function isSerializable(error: unknown): boolean {
  return error instanceof Error && classes.get(error.constructor.name)?.errorClass === error.constructor;
}

/** Serializes an error. Other processes see only its class, unless that is {@link Serializable}. */
export function serializeError(error: Error): SerializedError {
  const { name } = error.constructor;
  if (!isSerializable(error)) return { class: name, message: '', fields: {} };
  const fields = classes.get(name)?.fields ?? [];
  return {
    class: name,
    message: truncate(error.message),
    fields: Object.fromEntries(fields.map((field) => [field, (error as unknown as Record<string, unknown>)[field]])),
  };
}

/** Inverts {@link serializeError}. A class without {@link Serializable} is read as {@link OutcomeUnknownError}. */
export function deserializeError(serialized: SerializedError): Error {
  const { message, fields } = serialized;
  const entry = classes.get(serialized.class);
  if (!entry) return new OutcomeUnknownError(message || undefined);
  return Object.assign(new entry.errorClass(), { message }, fields);
}

function truncate(message: string): string {
  return message.length > MESSAGE_CHARS_MAX ? `${message.slice(0, MESSAGE_CHARS_MAX)}…` : message;
}
