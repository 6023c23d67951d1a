/** The options of `tessera up`. */
export interface Options {
  shards?: number;
  replicas?: number;
  configReplicas?: number;
  configShard?: boolean;
  routers?: number;
  port?: number;
  dbpath?: string;
  standalone?: boolean;
  replset?: string;
  auth?: boolean;
  tls?: boolean;
  setParameter?: Record<string, string | number | boolean>;
  config?: string;
  web?: number;
}

export interface Cluster extends AsyncDisposable {
  readonly uri: string;
  /** What `tessera up --json` prints. */
  readonly info: {
    uri: string;
    routers: string[];
    shards: { id: string; uri: string }[];
    config: string | null;
    millis: number;
    user?: string;
    password?: string;
    web?: string;
  };
  /** Keeps all databases as they are now. */
  snapshot(name: string): Promise<void>;
  /** Puts all databases back to a snapshot. */
  restore(name: string): Promise<void>;
  stop(): Promise<void>;
}

export declare const binary: string;
export declare function start(options?: Options): Promise<Cluster>;
