import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * A real HDFS on loopback: a name node and a data node in one process, with free ports and their files in the folder that
 * is given. It prints `ready RPC_PORT HTTP_PORT`, and ends when its standard input does.
 */
public class HdfsServer {
  public static void main(String[] args) throws Exception {
    File folder = new File(args[0]);
    Configuration conf = new Configuration();
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:0");
    conf.set("dfs.namenode.rpc-address", "127.0.0.1:0");
    conf.set("dfs.namenode.http-address", "127.0.0.1:0");
    conf.set("dfs.datanode.address", "127.0.0.1:0");
    conf.set("dfs.datanode.http.address", "127.0.0.1:0");
    conf.set("dfs.datanode.ipc.address", "127.0.0.1:0");
    conf.set("dfs.datanode.hostname", "127.0.0.1");
    conf.set("dfs.namenode.name.dir", new File(folder, "name").toURI().toString());
    conf.set("dfs.datanode.data.dir", new File(folder, "data").toURI().toString());
    conf.set("dfs.replication", "1");
    conf.set("dfs.permissions.enabled", "false");
    conf.set("dfs.namenode.safemode.extension", "0");
    DefaultMetricsSystem.setMiniClusterMode(true); // two servers in one process
    NameNode.format(conf);
    NameNode names = new NameNode(conf);
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:" + names.getNameNodeAddress().getPort());
    conf.set("dfs.namenode.rpc-address", "127.0.0.1:" + names.getNameNodeAddress().getPort());
    DataNode data = DataNode.createDataNode(new String[] {}, conf);
    while (!data.isDatanodeFullyStarted()) {
      Thread.sleep(50);
    }
    System.out.println("ready " + names.getNameNodeAddress().getPort() + " " + names.getHttpAddress().getPort());
    while (System.in.read() >= 0) {
    }
    System.exit(0);
  }
}
