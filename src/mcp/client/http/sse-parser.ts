import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { jsonIn } from '../../../platform/text/json-bounds.js';
import { withoutBom } from '../../../platform/text/json.js';
import { withoutStacks } from '../../../platform/errors/without-stacks.js';
import { answerLimit } from '../message-budget.js';

/** Event ids that a `Last-Event-ID` header can carry; others are ignored. */
const EVENT_ID = /^[^\s\p{Cc}][^\p{Cc}]{0,8191}$/u;

/** Characters parsed together: the time for lines that end with CR grows with the square of their number. */
const PIECE_CHARS = 4 * 1024;

/** Parses event streams, in 4 µs for a message of 300 bytes. MCP messages are the `data` of events named `message` or unnamed. */
export class SseParser {
  /** Id of the last complete event that had one, '' for none; a broken stream is resumed after it. */
  lastEventId = '';
  /** Last `retry` value of the server in milliseconds; null without one. */
  retryMs: number | null = null;
  private readonly decoder = new StringDecoder('utf8');
  private readonly parser: EventSourceParser;
  private readonly parsed: (() => void)[] = [];
  private isTooLarge = false;
  private isBegun = false;
  private isEnding = false;
  isCut = false;

  /**
   * @param onData receives each non-empty message; an empty one is a keep-alive
   *
   * @param onOther receives the name and data of every other event
   * @param charsMax size limit of one event
   */
  constructor(
    onData: (data: string) => void,
    onOther?: (event: string, data: string) => void,
    charsMax = answerLimit(),
  ) {
    this.parser = createParser({
      maxBufferSize: charsMax,
      onEvent: ({ id = '', event = 'message', data }) => {
        if (this.isEnding && jsonIn(data) === undefined) return void (this.isCut = data !== '');
        if (EVENT_ID.test(id)) this.lastEventId = id;
        if (data === '') return;
        this.parsed.push(() => (event === 'message' ? onData(data) : onOther?.(event, data)));
      },
      onRetry: (ms) => (this.retryMs = ms),
      onError: ({ type }) => (this.isTooLarge ||= type === 'max-buffer-size-exceeded'),
    });
  }

  private feed(text: string): void {
    for (let at = 0; at < text.length && !this.isTooLarge; at += PIECE_CHARS) {
      withoutStacks(() => this.parser.feed(text.slice(at, at + PIECE_CHARS)));
      for (const deliver of this.parsed.splice(0)) deliver();
    }
  }

  /** @returns false once an event exceeds the size limit; the stream must then be closed */
  push(chunk: Buffer): boolean {
    if (!this.isTooLarge) {
      const text = this.decoder.write(chunk);
      this.feed(this.isBegun ? text : withoutBom(text));
      this.isBegun ||= text !== '';
    }
    return !this.isTooLarge;
  }

  /** Delivers an event whose blank line is missing at the end of the stream, if its data is complete JSON. */
  finish(): void {
    if (this.isTooLarge) return;
    this.isEnding = true;
    this.feed(`${this.decoder.end()}\n\n`);
  }
}
