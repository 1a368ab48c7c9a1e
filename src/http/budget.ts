/** What each owner takes of what all share: turns' places, requests a minute, and bytes of memory. */
import { GatewayError } from "../core/errors.ts";
import type { HttpSettings, Token } from "./settings.ts";

/** Of one owner, or of all; there are as few owners as names in the configuration. */
interface Account {
  turns: number;
  bytes: number;
  /** What is left of its requests, as of that time. */
  left: number;
  at: number;
}

/** Bodies, and answers that nobody has read. */
const maxBytes = 512 * 1024 * 1024;

export type Budget = ReturnType<typeof createBudget>;

export function createBudget(now: () => number) {
  const all = createAccount();
  const accounts = new Map<string, Account>();

  function accountOf(owner: string): Account {
    let account = accounts.get(owner);
    if (account === undefined) accounts.set(owner, (account = createAccount()));
    return account;
  }

  return {
    /** What all requests have together. */
    all: all as Readonly<Pick<Account, "turns" | "bytes">>,
    open: (token: Token, { limits }: HttpSettings): Share =>
      new Share({
        all,
        own: accountOf(token.owner),
        maxTurns: limits.maxConcurrentTurns,
        maxOwn: token.maxConcurrentTurns ?? Infinity,
      }),
    /** Takes one of the requests that an owner may send: they come back steadily, up to a burst. */
    takeRequest({ owner, rate: own }: Token, { limits }: HttpSettings): void {
      const rate = own ?? limits.rate;
      if (rate === undefined) return;
      const account = accountOf(owner);
      const perMs = rate.requestsPerMinute / 60_000;
      const at = now();
      // A clock that was set back takes nothing away.
      const had = Math.min(rate.burst, account.left + Math.max(0, at - account.at) * perMs);
      account.at = at;
      account.left = had < 1 ? had : had - 1;
      if (had >= 1) return;
      const message = `This token may send ${rate.requestsPerMinute} requests a minute. Wait as long as Retry-After says.`;
      const retryAfterSeconds = Math.ceil((1 - had) / perMs / 1_000);
      throw new GatewayError("rate_limit_exceeded", message, { retryAfterSeconds });
    },
  };
}

function createAccount(): Account {
  return { turns: 0, bytes: 0, left: Infinity, at: 0 };
}

/** What one request takes while it lasts. */
export class Share {
  private readonly of: {
    readonly all: Account;
    readonly own: Account;
    readonly maxTurns: number;
    readonly maxOwn: number;
  };
  private place: "none" | "own" | "another's" = "none";
  private bytes = 0;

  constructor(of: Share["of"]) {
    this.of = of;
  }

  /** Throws if it cannot have a turn's place now. `isHeld`: the turn that it starts or joins takes its owner's itself. */
  check(isHeld: boolean): void {
    const { all, maxTurns } = this.of;
    if (all.turns >= maxTurns) {
      const message = `The gateway is already running ${maxTurns} turns (gateway.http.limits.max_concurrent_turns). Try again shortly.`;
      throw new GatewayError("overloaded", message, { retryAfterSeconds: 1 });
    }
    if (!isHeld) this.checkOwn();
  }

  private checkOwn(): void {
    const { own, maxOwn } = this.of;
    if (own.turns < maxOwn) return;
    const message = `This token may have ${maxOwn} turns running at the same time. Wait for one to end.`;
    throw new GatewayError("rate_limit_exceeded", message, { retryAfterSeconds: 1 });
  }

  enter(isHeld: boolean): void {
    this.check(isHeld);
    this.of.all.turns += 1;
    this.place = isHeld ? "another's" : "own";
    if (!isHeld) this.of.own.turns += 1;
  }

  leave(): void {
    if (this.place !== "none") this.of.all.turns -= 1;
    if (this.place === "own") this.of.own.turns -= 1;
    this.place = "none";
  }

  /** A place of its owner for a turn that outlives this request; what it returns gives it back, once. */
  hold(): () => void {
    const { own } = this.of;
    this.checkOwn();
    own.turns += 1;
    return () => void (own.turns -= 1);
  }

  /** Throws if so many more bytes have no room now; whatever comes alone has. */
  take(more: number): void {
    const { all, own } = this.of;
    const hasRoom = all.bytes + more <= maxBytes && own.bytes + more <= maxBytes / 2;
    if (!hasRoom && all.bytes > 0) {
      const message = `Requests and unread answers may take ${maxBytes} bytes, those of one token's name half of it. Try again shortly.`;
      throw new GatewayError("overloaded", message, { retryAfterSeconds: 1 });
    }
    this.count(more);
  }

  /** Takes them whether or not they have room. */
  count(more: number): void {
    this.bytes += more;
    this.of.own.bytes += more;
    this.of.all.bytes += more;
  }

  /** Gives bytes back, by default all. */
  release(bytes = this.bytes): void {
    this.count(-bytes);
  }
}
